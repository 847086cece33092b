"""What grows with what: children in a fan-out, pools at once, rows on record.

The cost for each child of 10 to 10,000 and for each pool of 1 to 1,000 should stay what it is; a look at the
record, and the start of a host, should not know how many rows of others there are: 0, 10,000, a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import LOOPS, Base, Bench, Measure, Plot, Target

OURS = tuple(f"custodes, {loop}" for loop in LOOPS)
LOOKS = {
    "history": "routing's history",
    "conversation": "trace of a conversation of 100",
    "latest": "the newest 20 runs",
    "start": "a host's start to its first outcome",
}


def measures(quick: bool) -> Iterator[Measure]:
    for size in (100, 10, 1_000, *(() if quick else (10_000,))):
        yield Measure(
            "children",
            size,
            f"a child of {size:,}",
            base=Base(size=100) if size > 100 else None,  # ten are mostly the cost of one fan-out
            targets=tuple(Target(name, 1.5) for name in OURS) if size > 100 else (),
            bounded=True,
        )
    for size in (10, 1, 100, 1_000):
        yield Measure(
            "pools",
            size,
            f"admission and settle, a pool of {size:,}",
            base=None if size == 10 else Base(size=10),
            targets=tuple(Target(name, 1) for name in OURS) if size > 10 else (),
        )
    for case, title in LOOKS.items():
        yield Measure(case, 0, f"{title}, no rows")
        for rows in (10_000, *(() if quick else (1_000_000,))):
            base = Base(size=10_000) if rows > 10_000 else None
            yield Measure(case, rows, f"{title}, {rows:,} rows", base=base)


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"custodes, {loop}", "growth_subject", loop)


BENCH = Bench(
    "growth",
    "A figure is held against its own at another size: 1 is a straight line.",
    measures,
    contenders,
    plots=(
        Plot("lines", "children", "The processor's time for a child, by the size of its fan-out"),
        Plot("lines", "pools", "The processor's time for an admission and its settle, by pools at once"),
        Plot("lines", "start", "A host's start to its first outcome, by rows on record"),
        Plot("lines", "latest", "The newest 20 runs, by rows on record"),
    ),
)
