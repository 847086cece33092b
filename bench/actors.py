"""What the kernel costs, as ratios to hand-written code of the same shape, measured in the same run.

    python -m bench.actors [--rounds 7] [--only ask]

Rounds are interleaved, so that a noisy machine is noisy for all; a ratio is the median of the ratios of
the rounds. The floor is anyio by hand: a task with a mailbox (a memory object stream) and a cancel scope
of its own, spawned with a checkpoint, as by any async call. ``bare`` is spawned without it, so that ours is
charged with a pass of the scheduler that its floor does not make. Raw trio, raw asyncio and Pykka (where it
is installed: ``pip install pykka``) are shown for orientation.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import statistics
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import NamedTuple

import anyio
from bench.by_hand import (
    Echo,
    Go,
    asyncio_ask,
    asyncio_cancel,
    asyncio_dynamic,
    asyncio_static,
    floor_ask,
    floor_bare,
    floor_cancel,
    floor_dynamic,
    floor_static,
    pykka_ask,
    pykka_dynamic,
    trio_ask,
    trio_cancel,
    trio_dynamic,
    trio_static,
)

from custodes.actors import Actor, ActorRef, ChildSpec, Supervisor, handles

# -- Ours


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
    Case("bare", 1_000, 1.5, ours_dynamic, floor_bare, trio_dynamic, asyncio_dynamic),
    Case("bare", 10_000, 1.5, ours_dynamic, floor_bare, trio_dynamic, asyncio_dynamic),
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
