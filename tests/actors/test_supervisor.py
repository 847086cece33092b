"""Supervisors as their hosts and actors see them: start, stop, nest, fail."""

from __future__ import annotations

from contextlib import suppress
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
    ChildLimit,
    ChildSpec,
    DuplicateChild,
    Intensity,
    InvalidSpec,
    MailboxFull,
    StartFailed,
    Supervisor,
    SupervisorFailed,
    UnknownChild,
)
from support.actors import AT_ONCE, Add, Crash, Finish, Hang, Journal, Starting, Worker

pytestmark = pytest.mark.anyio


# -- Start and stop


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


# -- Dynamic children


async def test_start_child_returns_once_the_child_has_started() -> None:
    journal = Journal()
    async with Supervisor() as root:
        ref = await root.start_child(journal.spec("a"))
        assert journal.take() == ["start a"]
        assert ref.path == "root/a"
        assert root.ref("a") is ref


async def test_a_failure_in_on_start_reaches_the_caller_and_leaves_nothing() -> None:
    def fail() -> None:
        raise ValueError

    async with Supervisor() as root:
        with pytest.raises(StartFailed, match=r"root/a: could not start \(ValueError\)") as failed:
            await root.start_child(ChildSpec(id="a", start=lambda: Starting(fail)))
        assert isinstance(failed.value.__cause__, ValueError)
        assert root.statistics().children == ()
        await root.start_child(ChildSpec(id="a", start=Worker))


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


# -- F1: one child's crash is its own


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


# -- F2, F3: cancel


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


# -- F7: caps


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


# -- F17: failing upward


async def test_exceeded_intensity_fails_the_root_once_with_the_history_of_causes() -> None:
    """F17."""
    journal = Journal()
    causes = [ValueError(number) for number in range(3)]
    intensity = Intensity(restarts=2, period=60, backoff=0)
    with pytest.raises(SupervisorFailed, match="root: more than 2 restarts within 60 s") as failed:  # noqa: PT012  # it is raised by the tree, not by a line
        async with Supervisor([journal.spec("a"), journal.spec("b")], intensity=intensity) as root:
            for cause in causes:
                with pytest.raises(ActorCrashed):
                    await root.ref("b").ask(Crash(cause))
            await anyio.sleep_forever()
    assert list(failed.value.exceptions) == causes
    assert failed.value.path == "root"
    assert causes[0].__notes__ == ["crashed in root/b"]
    assert [line.partition(":")[0] for line in journal.take()[-2:]] == ["stop b", "stop a"]


async def test_a_nested_failure_is_one_crash_for_the_parent() -> None:
    """F17, nested."""

    def nested() -> Supervisor:
        return Supervisor([ChildSpec(id="a", start=Worker)], intensity=Intensity(restarts=0))

    async with Supervisor([ChildSpec(id="nested", start=nested)], intensity=AT_ONCE) as root:
        first = root.supervisor("nested")
        first.ref("a").tell(Crash(ValueError()))
        await wait_all_tasks_blocked()
        second = root.supervisor("nested")
        assert second is not first
        assert await second.ref("a").ask(Add(1)) == 1
        statistics = root.statistics()
        assert statistics.crashes == 1
        [cause] = [crash.cause for crash in root._executor.history]
        assert isinstance(cause, SupervisorFailed)
        assert cause.path == "root/nested"


async def test_run_raises_the_failure_plain() -> None:
    supervisor = Supervisor([ChildSpec(id="a", start=Worker)], intensity=Intensity(restarts=0))
    with pytest.raises(ExceptionGroup) as group:  # noqa: PT012  # it is raised by the tree, not by a line
        async with create_task_group() as tasks:
            root = await tasks.start(supervisor.run)
            root.ref("a").tell(Crash(ValueError()))
    [failure] = group.value.exceptions
    assert isinstance(failure, SupervisorFailed)


# -- Bad input


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


# -- Introspection


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
