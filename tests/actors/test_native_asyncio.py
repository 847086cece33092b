"""An asyncio host with its own habits: Task.cancel, asyncio.timeout, gather, tasks that anyio never saw."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import anyio
import pytest

from custodes.actors import (
    ActorCrashed,
    ActorError,
    ActorRef,
    ActorStopped,
    ChildSpec,
    StrayCancellation,
    Supervisor,
)
from support.actors import AT_ONCE, Add, Crash, Hang, Journal, Starting, Worker

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _names(journal: Journal) -> list[str]:
    return [line.partition(":")[0] for line in journal.take()]


async def test_a_timeout_of_the_host_stops_the_tree_in_order_and_stays_a_timeout() -> None:
    journal = Journal()

    async def host() -> None:
        async with asyncio.timeout(None) as bound, Supervisor([journal.spec("a"), journal.spec("b")]):
            bound.reschedule(0)
            await asyncio.sleep(3600)

    with pytest.raises(TimeoutError):
        await host()
    assert _names(journal) == ["start a", "start b", "stop b", "stop a"]
    current = asyncio.current_task()
    assert current is not None
    assert current.cancelling() == 0


async def test_a_timeout_while_the_tree_starts_leaves_nothing() -> None:
    journal = Journal()
    before = asyncio.all_tasks()
    hanging = ChildSpec(id="hanging", start=lambda: Starting(lambda: asyncio.sleep(3600)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0), Supervisor([journal.spec("a"), hanging]):
            pytest.fail("the body must not run")
    assert len(_names(journal)) in {0, 2}
    assert asyncio.all_tasks() == before


async def test_cancelling_the_hosts_task_again_and_again_does_not_break_the_order() -> None:
    journal = Journal()
    cleaning = asyncio.Event()
    released = asyncio.Event()

    class Slow(Worker):
        async def on_stop(self, reason: str) -> None:
            cleaning.set()
            await released.wait()
            await super().on_stop(reason)

    async def host() -> None:
        specs = [journal.spec("a"), ChildSpec(id="slow", start=lambda: Slow(journal), shutdown=60)]
        async with Supervisor(specs):
            await asyncio.sleep(3600)

    task = asyncio.create_task(host())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    await cleaning.wait()
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _names(journal) == ["start a", "start slow", "stop slow", "stop a"]


async def test_asks_and_starts_work_from_tasks_that_anyio_never_saw() -> None:
    async with Supervisor() as root:
        refs = await asyncio.gather(
            *(root.start_child(ChildSpec(id=str(number), start=Worker)) for number in range(5))
        )
        assert await asyncio.gather(*(ref.ask(Add(1)) for ref in refs)) == [1] * 5


async def test_a_native_cancel_of_an_ask_withdraws_it() -> None:
    async with Supervisor([ChildSpec(id="a", start=Worker)]) as root:
        ref = root.ref("a")
        until = asyncio.Event()
        ref.tell(Hang(until))  # type: ignore[arg-type]  # asyncio's event has the wait that is needed
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await ref.ask(Add(100))
        until.set()
        assert await ref.ask(Add(1)) == 1


async def test_a_native_cancel_of_a_start_leaves_nothing() -> None:
    async with Supervisor() as root:
        entered = asyncio.Event()

        async def hang() -> None:
            entered.set()
            await asyncio.sleep(3600)

        spec = ChildSpec(id="a", start=lambda: Starting(hang))
        task = asyncio.create_task(root.start_child(spec))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert root.statistics().children == ()


async def test_a_cancellation_out_of_a_future_is_a_crash_like_any_other() -> None:
    class Awaiting(Worker):
        async def receive(self, message: object) -> object:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
            return None

    async with Supervisor([ChildSpec(id="a", start=Awaiting)], intensity=AT_ONCE) as root:
        with pytest.raises(ActorCrashed) as crashed:
            await root.ref("a").ask(Add(1))
        assert isinstance(crashed.value.__cause__, asyncio.CancelledError)
        await anyio.wait_all_tasks_blocked()
        [crash] = root._executor.history
        assert isinstance(crash.cause, StrayCancellation)


async def test_a_host_that_cancels_every_task_of_its_loop_leaves_none_behind() -> None:
    journal = Journal()

    async def host() -> None:
        async with Supervisor([journal.spec("a"), journal.spec("b")], intensity=AT_ONCE) as root:
            await root.start_child(journal.spec("c"))
            await asyncio.sleep(3600)

    before = asyncio.all_tasks()
    task = asyncio.create_task(host())
    await anyio.wait_all_tasks_blocked()
    for other in asyncio.all_tasks() - before:
        other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert sorted(_names(journal)) == ["start a", "start b", "start c", "stop a", "stop b", "stop c"]


async def test_an_ask_in_flight_ends_when_the_host_is_cancelled() -> None:
    outcomes: list[type[BaseException]] = []

    async def host(ready: asyncio.Event) -> None:
        async with Supervisor([ChildSpec(id="a", start=Worker)]) as root:
            ref = root.ref("a")

            async def ask() -> None:
                try:
                    await ref.ask(Hang())
                except ActorStopped as stopped:
                    outcomes.append(type(stopped))

            asking = asyncio.create_task(ask())
            await asyncio.sleep(0)
            ready.set()
            try:
                await asyncio.sleep(3600)
            finally:
                await root.stop("the host is cancelled")
                await asking

    ready = asyncio.Event()
    task = asyncio.create_task(host(ready))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcomes == [ActorStopped]


TICKS = 30
"""The life of :func:`_eventful` takes less, and every kind of task of it steps in between."""


async def _eventful(journal: Journal, refs: list[ActorRef]) -> None:
    """Static, nested and dynamic children; a restart of all; a natural end."""

    def below() -> Supervisor:
        return Supervisor([journal.spec("x"), journal.spec("y")], intensity=AT_ONCE)

    specs = [journal.spec("a"), ChildSpec(id="below", start=below), journal.spec("b")]
    async with Supervisor(specs, strategy="one_for_all", intensity=AT_ONCE) as root:
        refs += [root.ref("a"), root.ref("b")]
        for number in range(2):
            refs.append(await root.start_child(journal.spec(f"d{number}", "temporary")))
            refs.append(await root.supervisor("below").start_child(journal.spec(f"e{number}", "transient")))
        refs[2].tell(Hang())
        refs[0].tell(Crash(ValueError()))
        for _ in range(8):
            await asyncio.sleep(0)


@pytest.mark.parametrize("tick", range(TICKS))
@pytest.mark.parametrize("aim", [*range(8), "all"])
async def test_a_native_cancel_of_any_task_at_any_tick_leaves_nothing_and_hangs_nobody(
    tick: int, aim: int | str
) -> None:
    """Also before a child's first step, where asyncio drops its coroutine without a word."""
    journal = Journal()
    refs: list[ActorRef] = []
    before = asyncio.all_tasks()
    host = asyncio.create_task(_eventful(journal, refs))
    for _ in range(tick):
        await asyncio.sleep(0)
    inner = sorted(asyncio.all_tasks() - before - {host}, key=lambda task: task.get_name())
    for task in inner if aim == "all" else inner[int(aim) : int(aim) + 1]:
        task.cancel()
    for _ in range(1_000):
        if host.done():
            break
        await asyncio.sleep(0)
    assert host.done(), "it hangs"
    if not host.cancelled():
        assert isinstance(host.exception(), ActorError | None)
    assert asyncio.all_tasks() == before
    for ref in refs:
        await ref.join()
    lives = Counter[str]()
    for line in _names(journal):
        what, name = line.split()
        lives[name] += 1 if what == "start" else -1
    assert not any(lives.values()), "each start has its stop"


async def test_a_native_cancel_of_the_trees_own_task_stops_it_in_order_and_is_told_to_the_host() -> None:
    journal = Journal()

    async def host() -> None:
        async with Supervisor([journal.spec("a"), journal.spec("b")]):
            [task] = [task for task in asyncio.all_tasks() if task.get_name() == "root"]
            task.cancel()
            await asyncio.sleep(3600)

    with pytest.raises(StrayCancellation) as stray:
        await host()
    assert stray.value.path == "root"
    assert _names(journal) == ["start a", "start b", "stop b", "stop a"]


async def test_a_native_cancel_of_a_supervisors_task_is_a_crash_like_any_other() -> None:
    below = ChildSpec(id="below", start=Supervisor)
    async with Supervisor([below], intensity=AT_ONCE) as root:
        for task in asyncio.all_tasks():
            if task.get_name() == "root/below":
                task.cancel()
        await anyio.wait_all_tasks_blocked()
        [crash] = root._executor.history
        assert isinstance(crash.cause, StrayCancellation)
        assert root.supervisor("below").statistics().state == "running"


async def test_a_stop_in_the_same_pass_as_the_end_a_restart_waits_for_makes_nobody() -> None:
    made: list[str] = []
    stopping = asyncio.Event()

    class Announcing(Worker):
        async def on_stop(self, reason: str) -> None:
            if reason.startswith("restarted"):
                stopping.set()

    def make(child_id: str) -> Callable[[], Worker]:
        def start() -> Worker:
            made.append(child_id)
            return Announcing()

        return start

    specs = [ChildSpec(id="a", start=make("a")), ChildSpec(id="b", start=make("b"))]
    async with Supervisor(specs, strategy="rest_for_one", intensity=AT_ONCE) as root:

        async def stop() -> None:
            await stopping.wait()
            await root.stop("in the same pass")

        task = asyncio.create_task(stop())
        root.ref("a").tell(Crash(ValueError()))
        await task
    assert made == ["a", "b"]
