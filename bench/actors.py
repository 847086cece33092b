"""What the kernel costs, as ratios to hand-written code of the same shape, measured in the same run.

    python bench/actors.py [--rounds 7] [--only ask]

Rounds are interleaved, so that a noisy machine is noisy for all; a ratio is the median of the ratios of
the rounds. The floor is anyio by hand: a task with a mailbox (a memory object stream) and a cancel scope
of its own, spawned with a checkpoint, as by any async call. Raw trio, raw asyncio and Pykka (where it is
installed: ``pip install pykka``) are shown for orientation.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import importlib.util
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import anyio
import trio
import trio.testing
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream

from custodes.actors import Actor, ActorRef, ChildSpec, Message, Supervisor, handles

# -- Ours


@dataclass(frozen=True, slots=True)
class Go(Message[None]):
    pass


@dataclass(frozen=True, slots=True)
class Echo(Message[int]):
    number: int


class OneJob(Actor):
    @handles(Go)
    async def go(self, _message: Go) -> None:
        self.context.stop()


class StartedJob(OneJob):
    async def on_start(self) -> None:
        """Overridden, so that a start has something to wait for, as ``task_status.started()`` has."""


class Sleeper(Actor):
    @handles(Go)
    async def go(self, _message: Go) -> None:
        await anyio.sleep_forever()


class Echoing(Actor):
    @handles(Echo)
    async def echo(self, message: Echo) -> int:
        return message.number


async def ours_dynamic(count: int) -> float:
    async with Supervisor() as root:
        begin = perf_counter()
        refs = list[ActorRef]()
        for number in range(count):
            ref = await root.start_child(ChildSpec(id=str(number), start=OneJob, restart="temporary"))
            ref.tell(Go())
            refs.append(ref)
        for ref in refs:
            await ref.join()
        return perf_counter() - begin


async def ours_static(count: int) -> float:
    specs = [ChildSpec(id=str(number), start=StartedJob, restart="temporary") for number in range(count)]
    begin = perf_counter()
    async with Supervisor(specs) as root:
        refs = [root.ref(spec.id) for spec in specs]
        for ref in refs:
            ref.tell(Go())
        for ref in refs:
            await ref.join()
    return perf_counter() - begin


async def ours_ask(count: int) -> float:
    async with Supervisor([ChildSpec(id="echo", start=Echoing)]) as root:
        ref = root.ref("echo")
        begin = perf_counter()
        for number in range(count):
            await ref.ask(Echo(number))
        return perf_counter() - begin


async def ours_cancel(count: int) -> float:
    async with Supervisor() as root:
        for number in range(count):
            ref = await root.start_child(ChildSpec(id=str(number), start=Sleeper, restart="temporary"))
            ref.tell(Go())
        await anyio.wait_all_tasks_blocked()
        begin = perf_counter()
        await root.stop()
        return perf_counter() - begin


# -- The floor: anyio by hand


async def floor_job(
    scope: anyio.CancelScope,
    mailbox: MemoryObjectReceiveStream[Go],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with scope, mailbox:
        task_status.started()
        await mailbox.receive()


async def floor_sleeper(scope: anyio.CancelScope, mailbox: MemoryObjectReceiveStream[Go]) -> None:
    with scope, mailbox:
        await mailbox.receive()
        await anyio.sleep_forever()


async def floor_dynamic(count: int) -> float:
    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_job, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
            await anyio.lowlevel.checkpoint()
    return perf_counter() - begin


async def floor_static(count: int) -> float:
    begin = perf_counter()
    async with anyio.create_task_group() as tasks:
        mailboxes = []
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            await tasks.start(floor_job, anyio.CancelScope(), receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
            send.close()
    return perf_counter() - begin


@dataclass(slots=True)
class Slot:
    message: Echo
    done: anyio.Event
    answer: int = 0


async def floor_echo(mailbox: MemoryObjectReceiveStream[Slot]) -> None:
    with mailbox:
        async for slot in mailbox:
            slot.answer = slot.message.number
            slot.done.set()


async def floor_ask(count: int) -> float:
    async with anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[Slot](128)
        tasks.start_soon(floor_echo, receive)
        with send:
            begin = perf_counter()
            for number in range(count):
                slot = Slot(Echo(number), anyio.Event())
                send.send_nowait(slot)
                await slot.done.wait()
            elapsed = perf_counter() - begin
    return elapsed


async def floor_cancel(count: int) -> float:
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            send, receive = anyio.create_memory_object_stream[Go](128)
            tasks.start_soon(floor_sleeper, anyio.CancelScope(), receive)
            send.send_nowait(Go())
            send.close()
        await anyio.wait_all_tasks_blocked()
        begin = perf_counter()
        tasks.cancel_scope.cancel()
    return perf_counter() - begin


# -- Raw trio


async def trio_dynamic(count: int) -> float:
    async def job(scope: trio.CancelScope, mailbox: trio.MemoryReceiveChannel[Go]) -> None:
        with scope:
            await mailbox.receive()

    begin = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            nursery.start_soon(job, trio.CancelScope(), receive)
            send.send_nowait(Go())
            await trio.lowlevel.checkpoint()
    return perf_counter() - begin


async def trio_static(count: int) -> float:
    async def job(
        mailbox: trio.MemoryReceiveChannel[Go], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.CancelScope():
            task_status.started()
            await mailbox.receive()

    begin = perf_counter()
    async with trio.open_nursery() as nursery:
        mailboxes = []
        for _ in range(count):
            send, receive = trio.open_memory_channel[Go](128)
            await nursery.start(job, receive)
            mailboxes.append(send)
        for send in mailboxes:
            send.send_nowait(Go())
    return perf_counter() - begin


async def trio_ask(count: int) -> float:
    async def echo(mailbox: trio.MemoryReceiveChannel[tuple[Echo, trio.Event, list[int]]]) -> None:
        async for message, done, answer in mailbox:
            answer.append(message.number)
            done.set()

    async with trio.open_nursery() as nursery:
        send, receive = trio.open_memory_channel[tuple[Echo, trio.Event, list[int]]](128)
        nursery.start_soon(echo, receive)
        async with send:
            begin = perf_counter()
            for number in range(count):
                done = trio.Event()
                send.send_nowait((Echo(number), done, []))
                await done.wait()
            return perf_counter() - begin


async def trio_cancel(count: int) -> float:
    async def job() -> None:
        with trio.CancelScope():
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(job)
        await trio.testing.wait_all_tasks_blocked()
        begin = perf_counter()
        nursery.cancel_scope.cancel()
    return perf_counter() - begin


# -- Raw asyncio


async def asyncio_dynamic(count: int) -> float:
    async def job(mailbox: asyncio.Queue[Go]) -> None:
        await mailbox.get()

    begin = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            mailbox = asyncio.Queue[Go](128)
            tasks.create_task(job(mailbox))
            mailbox.put_nowait(Go())
            await asyncio.sleep(0)
    return perf_counter() - begin


async def asyncio_static(count: int) -> float:
    async def job(mailbox: asyncio.Queue[Go], started: asyncio.Event) -> None:
        started.set()
        await mailbox.get()

    begin = perf_counter()
    async with asyncio.TaskGroup() as tasks:
        mailboxes = []
        for _ in range(count):
            mailbox, started = asyncio.Queue[Go](128), asyncio.Event()
            tasks.create_task(job(mailbox, started))
            await started.wait()
            mailboxes.append(mailbox)
        for mailbox in mailboxes:
            mailbox.put_nowait(Go())
    return perf_counter() - begin


async def asyncio_ask(count: int) -> float:
    async def echo(mailbox: asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None]) -> None:
        while (item := await mailbox.get()) is not None:
            message, answer = item
            answer.set_result(message.number)

    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        mailbox = asyncio.Queue[tuple[Echo, asyncio.Future[int]] | None](128)
        tasks.create_task(echo(mailbox))
        begin = perf_counter()
        for number in range(count):
            answer = loop.create_future()
            mailbox.put_nowait((Echo(number), answer))
            await answer
        elapsed = perf_counter() - begin
        mailbox.put_nowait(None)
        return elapsed


async def asyncio_cancel(count: int) -> float:
    tasks = [asyncio.create_task(asyncio.sleep(3600)) for _ in range(count)]
    await asyncio.sleep(0)
    begin = perf_counter()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return perf_counter() - begin


# -- Pykka: a thread for each actor


def pykka_dynamic(count: int) -> float:
    pykka: Any = importlib.import_module("pykka")

    class Job(pykka.ThreadingActor):  # type: ignore[misc]  # Any: it is not installed where this is checked
        def on_receive(self, _message: Any) -> None:
            self.stop()

    begin = perf_counter()
    refs = []
    for _ in range(count):
        ref = Job.start()
        ref.tell(Go())
        refs.append(ref)
    for ref in refs:
        ref.actor_stopped.wait()
    return perf_counter() - begin


def pykka_ask(count: int) -> float:
    pykka: Any = importlib.import_module("pykka")

    class Echoes(pykka.ThreadingActor):  # type: ignore[misc]  # Any: it is not installed where this is checked
        def on_receive(self, message: Any) -> int:
            number: int = message.number
            return number

    ref = Echoes.start()
    begin = perf_counter()
    for number in range(count):
        ref.ask(Echo(number))
    elapsed = perf_counter() - begin
    ref.stop()
    return elapsed


# -- Measuring

Timed = Callable[[], float]


class Case(NamedTuple):
    name: str
    times: int
    target: float
    ours: Callable[[int], Awaitable[float]]
    floor: Callable[[int], Awaitable[float]]
    trio: Callable[[int], Awaitable[float]]
    asyncio: Callable[[int], Awaitable[float]]
    pykka: Callable[[int], float] | None = None


CASES = (
    Case("dynamic", 1_000, 1.5, ours_dynamic, floor_dynamic, trio_dynamic, asyncio_dynamic, pykka_dynamic),
    Case("dynamic", 10_000, 1.5, ours_dynamic, floor_dynamic, trio_dynamic, asyncio_dynamic),
    Case("static", 1_000, 1.3, ours_static, floor_static, trio_static, asyncio_static),
    Case("static", 10_000, 1.3, ours_static, floor_static, trio_static, asyncio_static),
    Case("ask", 10_000, 1.3, ours_ask, floor_ask, trio_ask, asyncio_ask, pykka_ask),
    Case("cancel", 10_000, 1.5, ours_cancel, floor_cancel, trio_cancel, asyncio_cancel),
)


def contenders(case: Case) -> dict[str, Timed]:
    def on(backend: str, function: Callable[[int], Awaitable[float]]) -> Timed:
        return partial(anyio.run, function, case.times, backend=backend)

    timed = {
        "ours/asyncio": on("asyncio", case.ours),
        "floor/asyncio": on("asyncio", case.floor),
        "ours/trio": on("trio", case.ours),
        "floor/trio": on("trio", case.floor),
        "raw trio": on("trio", case.trio),
        "raw asyncio": on("asyncio", case.asyncio),
    }
    if case.pykka is not None and importlib.util.find_spec("pykka"):
        timed["pykka"] = partial(case.pykka, case.times)
    return timed


def measure(case: Case, rounds: int) -> dict[str, list[float]]:
    """µs for each contender, round by round. The order turns; the first round only warms up."""
    timed = contenders(case)
    names = list(timed)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for round_ in range(rounds + 1):
        turn = round_ % len(names)
        for name in names[turn:] + names[:turn]:
            gc.collect()
            elapsed = timed[name]()
            if round_:
                samples[name].append(elapsed / case.times * 1e6)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="one case's name")
    arguments = parser.parse_args()

    print(f"Python {sys.version.split()[0]}; µs for each, medians of {arguments.rounds} rounds\n")
    print("| case | loop | ours | floor | ratio | target | raw trio | raw asyncio | Pykka |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in CASES:
        if arguments.only not in (None, case.name):
            continue
        samples = measure(case, arguments.rounds)
        medians = {name: f"{statistics.median(values):.1f}" for name, values in samples.items()}
        for loop in ("asyncio", "trio"):
            ours, floor = f"ours/{loop}", f"floor/{loop}"
            ratios = [a / b for a, b in zip(samples[ours], samples[floor], strict=True)]
            print(
                f"| {case.name} {case.times:,} | {loop} | {medians[ours]} | {medians[floor]} "
                f"| {statistics.median(ratios):.2f} | ≤ {case.target} | {medians['raw trio']} "
                f"| {medians['raw asyncio']} | {medians.get('pykka', '-')} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
