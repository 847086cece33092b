"""Many children: a crash is its own (F1), backpressure (F15), caps on depth and total (F7)."""

from __future__ import annotations

from typing import Any

import pytest
from anyio import Event, create_task_group, wait_all_tasks_blocked

from custodes.actors import (
    Actor,
    ActorCrashed,
    ChildLimit,
    ChildSpec,
    MailboxFull,
    Supervisor,
)
from support.actors import Add, Crash, Finish, Hang, Worker

pytestmark = pytest.mark.anyio


async def test_one_failure_among_five_leaves_four_answers_in_the_order_asked() -> None:
    """F1."""
    outcomes: list[object] = [None] * 5

    async def run(root: Supervisor, number: int) -> None:
        ref = await root.start_child(ChildSpec(id=f"child-{number}", start=Worker, restart="temporary"))
        try:
            outcomes[number] = await ref.ask(Crash(ValueError()) if number == 2 else Add(number))
        except ActorCrashed as crashed:
            outcomes[number] = type(crashed.__cause__)

    async with Supervisor() as root, create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(run, root, number)
    assert outcomes == [0, 1, ValueError, 3, 4]


async def test_many_children_and_one_slow_consumer_meet_backpressure_not_memory() -> None:
    """F15."""
    gate = Event()
    refusals: list[str] = []

    class Producer(Actor):
        async def receive(self, message: Any) -> None:
            try:
                self.context.supervisor.ref("consumer").tell(Add(1))
            except MailboxFull as full:
                refusals.append(full.path)
            self.context.stop()

    async with Supervisor([ChildSpec(id="consumer", start=Worker)]) as root:
        consumer = root.ref("consumer")
        consumer.tell(Hang(gate))
        await wait_all_tasks_blocked()
        refs = []
        for number in range(10_000):
            ref = await root.start_child(ChildSpec(id=str(number), start=Producer, restart="temporary"))
            ref.tell(Finish())
            refs.append(ref)
        for ref in refs:
            await ref.join()
        assert refusals == ["root/consumer"] * (10_000 - Worker.mailbox_size)
        assert consumer.statistics().mailbox_depth == Worker.mailbox_size
        gate.set()
        await wait_all_tasks_blocked()
        assert await consumer.ask(Add(0)) == Worker.mailbox_size


async def test_recursive_spawning_is_refused_by_the_cap_on_depth() -> None:
    """F7."""

    async def spawn(supervisor: Supervisor) -> int:
        below = await supervisor.start_child(ChildSpec(id="below", start=Supervisor, restart="temporary"))
        return 1 + await spawn(below)

    async with Supervisor(max_depth=5) as root:
        with pytest.raises(
            ChildLimit, match=r"root: refuses root(/below){6}: its cap of 5 \(depth"
        ) as refused:
            await spawn(root)
        assert (refused.value.limit, refused.value.maximum) == ("depth", 5)
        assert root.statistics().dynamic_below == 5


async def test_recursive_spawning_is_refused_by_the_cap_on_children_of_the_whole_subtree() -> None:
    """F7."""
    refused: list[ChildLimit] = []

    class Breeder(Actor):
        async def receive(self, message: Any) -> None:
            supervisor = self.context.supervisor
            for name in ("left", "right"):
                try:
                    spec = ChildSpec(
                        id=name, start=lambda: Supervisor([ChildSpec(id="breeder", start=Breeder)])
                    )
                    below = await supervisor.start_child(spec)
                    below.ref("breeder").tell(message)
                except ChildLimit as limit:
                    refused.append(limit)

    async with Supervisor([ChildSpec(id="breeder", start=Breeder)], max_children=20) as root:
        root.ref("breeder").tell(Add(1))
        await wait_all_tasks_blocked()
        assert root.statistics().dynamic_below == 20
        assert {(limit.path, limit.limit, limit.maximum) for limit in refused} == {("root", "children", 20)}


async def test_recursive_spawning_is_refused_by_default_too() -> None:
    supervisors: list[Supervisor] = []
    async with Supervisor() as root:
        supervisors.append(root)
        with pytest.raises(ChildLimit):  # noqa: PT012  # it is raised by the tree, not by a line
            while True:
                spec = ChildSpec(id="below", start=Supervisor)
                supervisors.append(await supervisors[-1].start_child(spec))
        assert len(supervisors) == 33
