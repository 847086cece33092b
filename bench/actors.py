"""What the kernel costs, as ratios to hand-written code of the same shape.

The floor is anyio by hand: a task with a mailbox (a memory object stream) and a cancel scope of its own,
spawned with a checkpoint, as by any async call. ``bare`` is spawned without it, so that ours is charged
with a pass of the scheduler that its floor does not make. Raw trio, raw asyncio and Pykka, which has a
thread for each actor (all on one core), are shown beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours, peer
from bench.suite.measure import LOOPS, Base, Bench, Measure, Plot, Target

SHAPES = {
    "dynamic": ("a child started, told and joined", 1.5),
    "bare": ("the same beside a task without a checkpoint", 1.5),
    "static": ("a child started by its supervisor, told and joined", 1.3),
    "ask": ("an ask and its answer", 1.3),
    "cancel": ("a sleeping child cancelled", 1.5),
}
PYKKA = "Pykka"


def measures(quick: bool) -> Iterator[Measure]:
    for shape, (title, most) in SHAPES.items():
        for size in (1_000,) if quick else (1_000, 10_000):
            for loop in LOOPS:
                mine, floor = f"custodes, {loop}", f"by hand, {loop}"
                yield Measure(
                    shape,
                    size,
                    f"{title}, {size:,} of them, {loop}",
                    among=(mine, floor, f"raw {loop}", *([PYKKA] if loop == "asyncio" else [])),
                    base=Base(floor),
                    targets=(Target(mine, most, floor=floor),),
                )


def contenders(_: ExitStack, peers_in: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"by hand, {loop}", "actors_subject", "hand", loop)
        yield ours(f"custodes, {loop}", "actors_subject", "custodes", loop)
        yield ours(f"raw {loop}", "actors_subject", "raw", loop)
    yield from peer(PYKKA, "pykka", "actors_peers", peers_in)


BENCH = Bench(
    "actors",
    "The floor is anyio by hand: a task with a mailbox and a cancel scope of its own.",
    measures,
    contenders,
    plots=(
        Plot("bars", "dynamic", "A child of 1,000, started, told and joined: the processor's time", 1_000),
    ),
)
