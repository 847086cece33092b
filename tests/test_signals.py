"""Signals that ask for the end, while a block heeds them itself."""

from __future__ import annotations

import os
import signal

import anyio
import pytest

from custodes.signals import ENDING, heeding_signals

pytestmark = pytest.mark.anyio


async def test_each_is_told_to_the_block_and_ends_nothing_by_itself() -> None:
    told: list[anyio.Event] = [anyio.Event() for _ in ENDING]
    waiting = iter(told)
    async with heeding_signals(lambda: next(waiting).set()) as heard:
        for number, event in zip(ENDING, told, strict=True):
            os.kill(os.getpid(), number)
            with anyio.fail_after(20):
                await event.wait()
    assert heard == list(ENDING)


async def test_the_block_may_end_without_any_and_gives_them_back() -> None:
    before = [signal.getsignal(number) for number in ENDING]
    async with heeding_signals(lambda: None) as heard:
        assert [signal.getsignal(number) for number in ENDING] != before
    assert heard == []
    assert [signal.getsignal(number) for number in ENDING] == before


async def test_what_heeds_may_cancel_the_block() -> None:
    work = anyio.CancelScope()
    async with heeding_signals(work.cancel) as heard:
        with work:
            os.kill(os.getpid(), signal.SIGTERM)
            await anyio.sleep_forever()
    assert heard == [signal.SIGTERM]
