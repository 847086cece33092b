"""Cancel: idempotent, first reason first, however deep, and whoever is just being started (F2, F3)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from anyio import CancelScope, Event, create_task_group, wait_all_tasks_blocked

from custodes.actors import (
    Actor,
    ActorStopped,
    ChildEnd,
    ChildSpec,
    Supervisor,
)
from support.actors import Add, Finish, Hang, Journal, Starting, Worker

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("race", range(100))
async def test_a_race_of_cancel_and_completion_has_one_end_and_one_answer(race: int) -> None:
    """F2."""
    journal = Journal()
    ends: list[ChildEnd] = []

    async def stop(root: Supervisor, reason: str, delay: int) -> None:
        for _ in range(delay):
            await anyio.lowlevel.checkpoint()
        ends.append(await root.stop_child("run", reason))

    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("run", "temporary"))
        async with create_task_group() as tasks:
            tasks.start_soon(stop, root, "first", race % 5)
            tasks.start_soon(stop, root, "second", race % 3)
            for _ in range(race % 4):
                await anyio.lowlevel.checkpoint()
            with suppress(ActorStopped):
                ref.tell(Finish())
        ends.append(await root.stop_child("run", "third"))
        ends.append(await ref.join())
    assert len(set(ends)) == 1
    assert ends[0].outcome in {"completed", "stopped"}
    assert len(journal.take()) == 2


async def test_the_first_reason_wins_and_later_stops_await_the_same_end() -> None:
    cleaned = Event()
    ends: list[ChildEnd] = []

    class Careful(Worker):
        async def receive(self, message: object) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                with self.context.cleanup():
                    await cleaned.wait()

    async def stop(root: Supervisor, reason: str) -> None:
        ends.append(await root.stop_child("run", reason))

    async with Supervisor() as root, create_task_group() as tasks:
        ref = await root.start_child(ChildSpec(id="run", start=Careful, restart="temporary", shutdown=60))
        ref.tell(Add(1))
        await wait_all_tasks_blocked()
        tasks.start_soon(stop, root, "first")
        await wait_all_tasks_blocked()
        tasks.start_soon(stop, root, "second")
        await wait_all_tasks_blocked()
        assert ends == []
        assert ref.statistics().state == "stopping"
        cleaned.set()
        await wait_all_tasks_blocked()
        assert ends == [ChildEnd("root/run", "stopped", "first")] * 2


async def test_a_stop_goes_on_when_its_caller_is_cancelled() -> None:
    async with Supervisor() as root:
        ref = await root.start_child(ChildSpec(id="run", start=Worker))
        with CancelScope() as scope:
            scope.cancel()
            await root.stop_child("run", "first")
        assert (await ref.join()).reason == "first"


async def test_a_child_whose_start_is_cancelled_leaves_nothing() -> None:
    """F3, by the caller."""
    async with Supervisor() as root, create_task_group() as tasks:
        with CancelScope() as scope:
            tasks.start_soon(_cancel_when_blocked, scope)
            await root.start_child(ChildSpec(id="run", start=lambda: Starting(anyio.sleep_forever)))
        assert scope.cancelled_caught
        assert root.statistics().children == ()


async def _cancel_when_blocked(scope: CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


async def test_a_child_being_started_while_its_parent_stops_is_caught() -> None:
    """F3, by the parent: a child in its on_start is stopped; one that comes later is refused."""
    journal = Journal()
    refused: list[str] = []

    class Guarded(Worker):
        async def on_start(self) -> None:
            journal.lines.append("starting")
            try:
                await anyio.sleep_forever()
            finally:
                with CancelScope(shield=True):
                    await anyio.lowlevel.checkpoint()
                    try:
                        await root.start_child(journal.spec("late"))
                    except ActorStopped as error:
                        refused.append(error.path)

    async def start() -> None:
        with pytest.raises(ActorStopped) as stopped:
            await root.start_child(ChildSpec(id="run", start=Guarded))
        refused.append(stopped.value.path)

    async with create_task_group() as tasks:
        root = await tasks.start(Supervisor().run)
        tasks.start_soon(start)
        await wait_all_tasks_blocked()
        await root.stop()
    assert sorted(refused) == ["root", "root/run"]
    assert journal.take() == ["starting"]


async def test_a_stop_between_spawn_and_first_step_means_it_never_runs() -> None:
    ran: list[str] = []

    class Quick(Actor):
        async def receive(self, message: Any) -> None:
            ran.append("ran")

    async with Supervisor() as root:
        ref = await root.start_child(ChildSpec(id="run", start=Quick, restart="temporary"))
        ref.tell(Add(1))
        assert (await root.stop_child("run", "at once")).outcome == "stopped"
    assert ran == []


async def test_cancel_reaches_children_however_deep() -> None:
    journal = Journal()

    async def nest(supervisor: Supervisor, levels: int) -> None:
        ref = await supervisor.start_child(journal.spec(f"leaf-{levels}", "temporary"))
        ref.tell(Hang())
        if levels:
            spec = ChildSpec(id="below", start=Supervisor, restart="temporary")
            await nest(await supervisor.start_child(spec), levels - 1)

    async with Supervisor() as root:
        await nest(root, 10)
        journal.take()
        end = await root.stop_child("below", "enough")
        assert (end.outcome, end.reason) == ("stopped", "enough")
        assert sorted(journal.take()) == sorted(f"stop leaf-{level}: enough" for level in range(10))
        assert root.statistics().dynamic_below == 1
