"""A mailbox's batches: what is said in one breath, and an end to it whatever others do."""

from __future__ import annotations

import pytest
from anyio import create_task_group
from anyio.lowlevel import checkpoint

from custodes.actors.envelope import Envelope, Message
from custodes.actors.mailbox import Mailbox

pytestmark = pytest.mark.anyio


async def test_a_batch_is_taken_though_another_goes_on_asking_and_giving_up() -> None:
    mailbox = Mailbox("/a", capacity=10)
    mailbox.put(lone := Envelope(Message[None](), None, None))

    async def ask_and_give_up() -> None:
        for _ in range(1_000):
            mailbox.put(asked := Envelope(Message[None](), None, None))
            await checkpoint()
            mailbox.withdraw(asked)
            await checkpoint()
        mailbox.leave()

    async with create_task_group() as tasks:
        tasks.start_soon(ask_and_give_up)
        batch = await mailbox.get_batch(10)
        tasks.cancel_scope.cancel()
    assert lone in batch
