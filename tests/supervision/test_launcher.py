"""What was asked for begins in the order asked, once there is room for it, and not before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision.events import AttemptStarted, ChildEnded, ChildWaiting, Event
from custodes.supervision.record.records import running
from custodes.supervision.work import Work
from support import scripted
from support.works import implement, review

pytestmark = pytest.mark.anyio


class Gate:
    """Acts that hold their runtimes until it opens."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.news = anyio.Event()
        self.open = anyio.Event()

    async def act(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        self.begun.append(request.prompt)
        self.news.set()
        await self.open.wait()
        return await scripted.answer(request, progress)

    async def holds(self, *prompts: str) -> None:
        with anyio.fail_after(20):
            while sorted(self.begun) != sorted(prompts):
                self.news = anyio.Event()
                await self.news.wait()


@asynccontextmanager
async def one_at_a_time(
    project: Path, script: scripted.Script
) -> AsyncIterator[tuple[custodes.Supervision, custodes.Conversation, Gate]]:
    """A host with room for one child; what begins first holds it until the gate opens."""
    scripted.configure(project, max_parallel=1)
    gate = Gate()
    script.acts.append(gate.act)
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        yield supervision, parent, gate


async def test_one_at_a_time_they_begin_in_the_order_asked(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            for number in range(40):
                fan.start(review(str(number)))
    assert [outcome.status for outcome in fan.outcomes] == ["done"] * 40
    assert [request.prompt for request in script.requests] == [str(number) for number in range(40)]


async def test_a_child_that_waits_for_room_is_no_actor_yet(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, max_parallel=2)
    gate = Gate()
    script.acts.extend([gate.act] * 2)
    seen: list[Event] = []
    async with custodes.Supervision(tmp_path, observer=seen.append) as supervision:
        async with supervision.conversation("c") as parent, parent.fan_out() as fan:
            children = [fan.start(review(str(number))) for number in range(50)]
            await gate.holds("0", "1")
            siblings = await parent.children(await supervision.tree())
            assert siblings.statistics().dynamic_below == 2
            gate.open.set()
    waited = {event.run_id for event in seen if isinstance(event, ChildWaiting)}
    assert waited == {child.run_id for child in children[2:]}
    assert len(fan.outcomes) == len([event for event in seen if isinstance(event, ChildEnded)]) == 50


async def test_one_cancelled_while_it_waits_never_begins_and_takes_nobodys_room(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with one_at_a_time(tmp_path, script) as (supervision, parent, gate):
        async with parent.fan_out() as fan:
            fan.start(review("holds"))
            waits, next_one, last = (fan.start(review(each)) for each in ("waits", "next", "last"))
            await gate.holds("holds")
            assert (await next_one.cancel("not wanted")).status == "cancelled"
            assert (await waits.cancel("not wanted")).status == "cancelled"
            gate.open.set()
            assert (await last.outcome()).status == "done"
        slots, alive = (await supervision.tree()).services.slots, (await supervision.tree()).services.alive
        assert (slots.taken, slots.waiting, alive.taken, alive.waiting) == (0, 0, 0, 0)
    assert [request.prompt for request in script.requests] == ["holds", "last"]


@pytest.mark.parametrize("how", ["child", "fan-out"])
async def test_who_is_cancelled_in_the_queue_waits_for_nobody_elses_work(
    tmp_path: Path, script: scripted.Script, how: str
) -> None:
    async with one_at_a_time(tmp_path, script) as (supervision, parent, gate):
        async with parent.fan_out() as holding:
            holding.start(review("holds"))
            await gate.holds("holds")
            with anyio.fail_after(20):
                async with parent.fan_out() as fan:
                    waits = fan.start(review("waits"))
                    fan.start(review("waits behind it"))
                    await anyio.wait_all_tasks_blocked()
                    await (waits.cancel() if how == "child" else fan.cancel())
                    if how == "child":
                        await fan.cancel()
            assert [outcome.status for outcome in fan.outcomes] == ["cancelled", "cancelled"]
            gate.open.set()
        assert [outcome.status for outcome in holding.outcomes] == ["done"]
        services = (await supervision.tree()).services
        assert (services.slots.taken, services.slots.waiting, services.alive.waiting) == (0, 0, 0)


@pytest.mark.parametrize("crashed", ["store", "health", "leases", "conversations"])
async def test_those_that_wait_begin_once_a_restarted_tree_is_back(
    tmp_path: Path, script: scripted.Script, crashed: str
) -> None:
    async with one_at_a_time(tmp_path, script) as (supervision, parent, gate):
        tree = await supervision.tree()
        async with parent.fan_out() as fan:
            children = [fan.start(review(str(number))) for number in range(5)]
            await gate.holds("0")
            tree.root._executor.children[crashed].task.cancel()  # a crash of it
            with anyio.fail_after(20):
                ends = [await child.outcome() for child in children]
        assert [end.status for end in ends] == ["cancelled", "done", "done", "done", "done"]
        assert (tree.services.slots.taken, tree.services.alive.taken) == (0, 0)
        assert (await parent.dispatch(review("after"))).status == "done"


async def test_what_ran_while_the_store_crashed_is_closed_and_its_scope_free_once_it_is_back(
    tmp_path: Path, script: scripted.Script
) -> None:
    """The file is closed before what runs has ended: its ends are owed, and this process is not dead."""
    gate = Gate()
    script.acts.append(gate.act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        tree = await supervision.tree()
        async with parent.fan_out() as fan:
            fan.start(implement("src", prompt="writes"))
            await gate.holds("writes")
            tree.root._executor.children["store"].task.cancel()  # a crash of it
        with anyio.fail_after(20):
            assert (await parent.dispatch(implement("src"))).status == "done"
        rows = await tree.database().read(running)
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled"]
    assert rows == []


async def test_work_past_the_tree_that_is_cancelled_before_its_first_step_is_not_done(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, enabled=False)
    done: list[str] = []

    async def host(work: Work) -> None:
        await anyio.lowlevel.checkpoint()
        done.append(work.prompt)

    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c", dispatch=host) as parent:
            for passes in range(6):
                async with parent.fan_out() as fan:
                    child = fan.start(review(str(passes)))
                    for _ in range(passes):
                        await anyio.lowlevel.checkpoint()
                    outcome = await child.cancel()
                assert (outcome.status == "done") == (str(passes) in done)


async def test_a_cancelled_fan_out_leaves_no_room_taken(tmp_path: Path, script: scripted.Script) -> None:
    """Some at work, some just started, most in the line."""
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        services = (await supervision.tree()).services
        for passes in range(12):
            with anyio.CancelScope() as scope:
                async with parent.fan_out() as fan:
                    for number in range(40):
                        fan.start(review(str(number)))
                    for _ in range(passes):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()
            assert (services.slots.taken, services.alive.taken) == (0, 0)
        assert (await parent.dispatch(review("after"))).status == "done"


async def test_writers_in_the_line_for_a_scope_keep_no_reader_from_its_room(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, max_parallel=2, max_live=2)
    gate = Gate()
    script.acts.append(gate.act)
    seen: list[Event] = []
    async with custodes.Supervision(tmp_path, observer=seen.append) as supervision:
        async with supervision.conversation("c") as parent, parent.fan_out() as fan:
            fan.start(implement("src", prompt="writes"))
            await gate.holds("writes")
            for number in range(3):
                fan.start(implement("src", prompt=f"waits {number}"))
            reader = fan.start(review("reads"))
            with anyio.fail_after(20):
                assert (await reader.outcome()).status == "done"
            gate.open.set()
    assert {outcome.status for outcome in fan.outcomes} == {"done"}
    assert len([event for event in seen if isinstance(event, AttemptStarted)]) == 5


async def test_what_needs_no_room_does_not_wait_behind_what_does(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with one_at_a_time(tmp_path, script) as (_, parent, gate):
        async with parent.fan_out() as fan:
            fan.start(review("holds"))
            await gate.holds("holds")
            fan.start(review("waits"))
            refused = fan.start(Work(role="nobody", prompt="nothing"))
            with anyio.fail_after(20):
                assert (await refused.outcome()).status == "refused"
            gate.open.set()
    assert [outcome.status for outcome in fan.outcomes] == ["done", "done", "refused"]


async def test_a_conversation_that_has_ended_starts_nothing(tmp_path: Path, script: scripted.Script) -> None:
    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c") as parent:
            assert (await parent.dispatch(review("before"))).status == "done"
        outcome = await parent.dispatch(review("after"))
    assert outcome.status == "refused"
    assert outcome.refusal is not None
    assert "its conversation ended" in outcome.refusal.reason
    assert [request.prompt for request in script.requests] == ["before"]
