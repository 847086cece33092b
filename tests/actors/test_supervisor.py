"""Supervisors as their hosts and actors see them: start, stop, refuse, show."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio import CancelScope, Event, create_task_group, fail_after, wait_all_tasks_blocked

from custodes.actors import (
    Actor,
    ActorCrashed,
    ActorStatistics,
    ActorStopped,
    ChildEnd,
    ChildSpec,
    DuplicateChild,
    Intensity,
    InvalidSpec,
    StartFailed,
    Supervisor,
    UnknownChild,
)
from support.actors import AT_ONCE, Add, Crash, Finish, Journal, Starting, Worker

pytestmark = pytest.mark.anyio


async def test_children_start_in_order_and_stop_in_reverse() -> None:
    journal = Journal()
    async with Supervisor([journal.spec("a"), journal.spec("b"), journal.spec("c")]):
        assert journal.take() == ["start a", "start b", "start c"]
    assert journal.take() == ["stop c: the host left", "stop b: the host left", "stop a: the host left"]


async def test_the_next_child_starts_only_once_the_one_before_it_has_started() -> None:
    journal, gate = Journal(), Event()
    specs = [ChildSpec(id="slow", start=lambda: Starting(gate.wait)), journal.spec("next")]
    async with create_task_group() as tasks:
        supervisor = Supervisor(specs)
        tasks.start_soon(supervisor.run)
        await wait_all_tasks_blocked()
        assert journal.lines == []
        gate.set()
        await wait_all_tasks_blocked()
        assert journal.take() == ["start next"]
        await supervisor.stop()


async def test_dynamic_children_are_stopped_before_the_others() -> None:
    journal = Journal()
    async with Supervisor([journal.spec("static")]) as root:
        await root.start_child(journal.spec("x"))
        await root.start_child(journal.spec("y"))
    stops = [line for line in journal.take() if line.startswith("stop")]
    assert sorted(stops[:2]) == ["stop x: the host left", "stop y: the host left"]
    assert stops[2:] == ["stop static: the host left"]


async def test_a_cancel_by_the_host_is_an_orderly_stop() -> None:
    journal = Journal()
    with CancelScope() as scope:
        async with Supervisor([journal.spec("a"), journal.spec("b")]):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert [line.partition(":")[0] for line in journal.take()] == ["start a", "start b", "stop b", "stop a"]


async def test_it_runs_in_a_task_group_of_the_host() -> None:
    journal = Journal()
    async with create_task_group() as tasks:
        root: Supervisor = await tasks.start(Supervisor([journal.spec("a")]).run)
        assert await root.ref("a").ask(Add(1)) == 1
        tasks.cancel_scope.cancel()
    assert len(journal.take()) == 2


async def test_it_may_be_made_before_there_is_a_loop() -> None:
    supervisor = await anyio.to_thread.run_sync(Supervisor)
    async with supervisor as root:
        await root.start_child(ChildSpec(id="a", start=Worker))


async def test_an_error_of_the_body_comes_out_plain() -> None:
    journal = Journal()
    with pytest.raises(KeyError):
        async with Supervisor([journal.spec("a")]):
            raise KeyError
    assert journal.take() == ["start a", "stop a: the host left: KeyError"]


async def test_a_stop_from_within_the_tree_ends_it_once() -> None:
    class Ending(Worker):
        async def receive(self, message: object) -> object:
            return await self.context.supervisor.stop("enough")

    async with create_task_group() as tasks:
        root = await tasks.start(Supervisor([ChildSpec(id="a", start=Ending)]).run)
        root.ref("a").tell(Add(1))
        await wait_all_tasks_blocked()
        end = await root.stop("later")
    assert end == ChildEnd("root", "stopped", "enough")
    assert await root.stop() == end


async def test_start_child_returns_once_the_child_has_started() -> None:
    journal = Journal()
    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("a"))
        assert journal.take() == ["start a"]
        assert ref.path == "root/a"
        assert root.ref("a") == ref


async def test_a_failure_in_on_start_reaches_the_caller_and_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise ValueError

    async with Supervisor() as root:
        with pytest.raises(StartFailed, match=r"root/a: could not start \(ValueError\)") as failed:
            await root.start_child(ChildSpec(id="a", start=lambda: Starting(fail)))
        assert isinstance(failed.value.__cause__, ValueError)
        assert root.statistics().children == ()
        await root.start_child(ChildSpec(id="a", start=Worker))
    assert not caplog.records  # the caller heard of it


async def test_a_start_callable_that_raises_reaches_the_caller_too() -> None:
    def start() -> Actor:
        raise ValueError

    async with Supervisor() as root:
        with pytest.raises(StartFailed, match=r"root/a: its start callable raised \(ValueError\)"):
            await root.start_child(ChildSpec(id="a", start=start))
        assert root.statistics().children == ()


@pytest.mark.parametrize("made", ["an actor", 7])
async def test_a_start_that_returns_no_actor_or_supervisor_is_refused(made: object) -> None:
    spec: ChildSpec[Any] = ChildSpec(id="a", start=lambda: made)
    async with Supervisor() as root:
        with pytest.raises(StartFailed) as failed:
            await root.start_child(spec)
        assert isinstance(failed.value.__cause__, InvalidSpec)


@pytest.mark.parametrize("kind", [Worker, Supervisor])
async def test_a_start_that_returns_the_same_one_twice_is_refused(kind: type) -> None:
    made = kind()
    spec: ChildSpec[Any] = ChildSpec(id="a", start=lambda: made)
    async with Supervisor() as root:
        await root.start_child(spec)
        await root.stop_child("a")
        with pytest.raises(StartFailed) as failed:
            await root.start_child(spec)
        assert "has a place already" in str(failed.value.__cause__)


async def test_an_id_is_taken_until_its_child_has_ended() -> None:
    async with Supervisor() as root:
        await root.start_child(ChildSpec(id="a", start=Worker))
        with pytest.raises(DuplicateChild, match="root/a: a child of this id is there already"):
            await root.start_child(ChildSpec(id="a", start=Worker))
        await root.stop_child("a")
        await root.start_child(ChildSpec(id="a", start=Worker))


async def test_a_temporary_child_that_ends_removes_itself() -> None:
    async with Supervisor(max_children=1) as root:
        for number in range(10_000):
            ref = await root.start_child(ChildSpec(id=f"run-{number}", start=Worker, restart="temporary"))
            ref.tell(Finish())
            await ref.join()
        statistics = root.statistics()
        assert (statistics.children, statistics.dynamic_below, statistics.started) == ((), 0, 10_000)
        assert len(root._executor.ends) == 256


async def test_a_crash_of_a_temporary_child_is_not_answered_with_a_restart() -> None:
    journal = Journal()
    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("a", "temporary"))
        with pytest.raises(ActorCrashed):
            await ref.ask(Crash(ValueError()))
        end = await ref.join()
        assert (end.outcome, type(end.cause)) == ("crashed", ValueError)
        assert journal.take() == ["start a", "stop a: crashed: ValueError"]


async def test_a_transient_child_is_restarted_after_a_crash_only() -> None:
    journal = Journal()
    async with Supervisor(intensity=AT_ONCE) as root:
        ref = await root.start_child(journal.spec("a", "transient"))
        ref.tell(Crash(ValueError()))
        await wait_all_tasks_blocked()
        assert await ref.ask(Add(1)) == 1
        ref.tell(Finish())
        assert (await ref.join()).outcome == "completed"
        assert ref.statistics().restarts == 1


async def test_a_permanent_child_that_ends_normally_is_restarted() -> None:
    async with Supervisor([ChildSpec(id="a", start=Worker)], intensity=AT_ONCE) as root:
        ref = root.ref("a")
        await ref.ask(Add(1))
        await ref.ask(Finish())
        assert await ref.ask(Add(1)) == 1
        assert ref.statistics().restarts == 1


async def test_a_static_child_that_cannot_start_stops_those_before_it() -> None:
    journal = Journal()

    def fail() -> None:
        raise ValueError

    specs = [journal.spec("a"), ChildSpec(id="bad", start=lambda: Starting(fail)), journal.spec("c")]
    with pytest.raises(StartFailed, match=r"root/bad: could not start \(ValueError\)"):
        async with Supervisor(specs):
            pytest.fail("the body must not run")
    assert [line.partition(":")[0] for line in journal.take()] == ["start a", "stop a"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"intensity": Intensity(restarts=-1)}, "root: intensity.restarts must be 0 or more, not -1"),
        (
            {"strategy": "one_for_none"},
            "root: strategy must be one of one_for_one, one_for_all, rest_for_one",
        ),
        ({"max_children": -1}, "root: max_children and max_depth must be 0 or more"),
        ({"children": [ChildSpec(id="a/b", start=Worker)]}, "root/a/b: a child's id must be"),
        ({"children": [ChildSpec(id="a", start=Worker)] * 2}, "root/a: a child of this id is there already"),
    ],
)
async def test_what_cannot_be_followed_is_refused_with_the_path(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSpec, match=words):
        async with Supervisor(**arguments):
            pytest.fail("the body must not run")
    nested = ChildSpec(id="nested", start=lambda: Supervisor(**arguments))
    with pytest.raises(StartFailed) as failed:
        async with Supervisor() as root:
            await root.start_child(nested)
    assert words.replace("root", "root/nested", 1) in str(failed.value.__cause__)


async def test_a_supervisor_runs_once() -> None:
    supervisor = Supervisor()
    async with supervisor:
        pass
    with pytest.raises(InvalidSpec, match="runs once"):
        async with supervisor:
            pytest.fail("the body must not run")
    with pytest.raises(ActorStopped):
        await supervisor.start_child(ChildSpec(id="a", start=Worker))


async def test_a_child_that_is_not_there_is_named() -> None:
    async with Supervisor([ChildSpec(id="a", start=Worker)]) as root:
        with pytest.raises(UnknownChild, match="root/b: there is no such child"):
            root.ref("b")
        with pytest.raises(UnknownChild):
            root.supervisor("a")
        with pytest.raises(UnknownChild):
            await root.stop_child("b")


async def test_statistics_show_the_tree() -> None:
    specs: list[ChildSpec[Any]] = [ChildSpec(id="a", start=Worker), ChildSpec(id="below", start=Supervisor)]
    async with Supervisor(specs, intensity=AT_ONCE) as root:
        await root.supervisor("below").start_child(ChildSpec(id="x", start=Worker))
        await root.ref("a").ask(Add(1))
        with pytest.raises(ActorCrashed):
            await root.ref("a").ask(Crash(ValueError()))
        with fail_after(5):
            await root.ref("a").ask(Add(1))
        statistics = root.statistics()
        assert (statistics.path, statistics.state, statistics.dynamic_below) == ("root", "running", 1)
        assert (statistics.crashes, statistics.crashes_in_period) == (1, 1)
        actor, below = statistics.children
        assert isinstance(actor, ActorStatistics)
        assert (actor.path, actor.handled, actor.restarts) == ("root/a", 2, 1)
        assert below.path == "root/below"


async def test_the_id_of_a_spec_yet_to_start_is_taken() -> None:
    """An actor's ``on_start`` may start siblings; it must not push out one that is to come."""
    journal = Journal()

    class Early(Worker):
        async def on_start(self) -> None:
            with pytest.raises(DuplicateChild) as duplicate:
                await self.context.supervisor.start_child(journal.spec("b"))
            assert duplicate.value.path == "root/b"
            await self.context.supervisor.start_child(journal.spec("c"))

    async with Supervisor([ChildSpec(id="a", start=Early), journal.spec("b")]) as root:
        assert [child.path for child in root.statistics().children] == ["root/a", "root/c", "root/b"]


async def test_a_child_started_soon_has_its_ref_at_once_and_runs_from_the_next_pass_on() -> None:
    journal = Journal()
    async with Supervisor() as root:
        ref = root.start_child_soon(journal.spec("a"))
        assert journal.take() == []
        assert await ref.ask(Add(2)) == 2
        assert journal.take() == ["start a"]
        with pytest.raises(DuplicateChild):
            root.start_child_soon(journal.spec("a"))
    with pytest.raises(ActorStopped):
        root.start_child_soon(journal.spec("b"))


async def test_a_child_started_soon_that_cannot_start_tells_those_who_join_it_and_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("no")

    async with Supervisor() as root:
        ref = root.start_child_soon(ChildSpec(id="a", start=lambda: Starting(fail)))
        end = await ref.join()
        assert (end.outcome, str(end.cause)) == ("crashed", "no")
        with pytest.raises(UnknownChild):
            root.ref("a")
    assert [record.getMessage() for record in caplog.records] == ["root/a crashed: ValueError"]


async def test_refs_of_one_actor_are_equal_and_of_two_are_not() -> None:
    journal = Journal()
    async with Supervisor([journal.spec("a"), journal.spec("b")]) as root:
        assert root.ref("a") == root.ref("a")
        assert len({root.ref("a"), root.ref("a"), root.ref("b")}) == 2
        assert root.ref("a") != "a"
