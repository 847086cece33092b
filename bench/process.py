"""What a keeper costs a native program, and how soon after a cancel hard trees are proven gone.

A hard tree ignores TERM, opens sessions of its own and forks twice. The floor of a start is the same
program, and a bare isolated Python; that of a proof is by hand: kill every descendant there is, reap, and
look again until there is none, from one process that all of them fall back to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import Base, Bench, Measure, Plot, Target

KEEPER = "custodes"
BARE = "the program alone"
PYTHON = "a bare Python"
HAND = "by hand"


def measures(_: bool) -> Iterator[Measure]:
    yield Measure("start", 10, "'true', from its start to the proof", base=Base(PYTHON))
    yield Measure("memory", 1, "memory of a keeper, its share", key="bytes", rounds=1)
    for trees in (1, 10, 100):
        yield Measure(
            "proof",
            trees,
            f"from the grace's end to the last proof, hard trees: {trees}",
            by="seconds",
            targets=(Target(KEEPER, 0.5, absolute=True, floor=HAND),) if trees == 100 else (),
        )
        yield Measure(
            "proof", trees, f"a tree of {trees}, from its start to its proof", key="cpu", base=Base(HAND)
        )


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    for name, subject in ((PYTHON, "python"), (BARE, "program"), (HAND, "hand"), (KEEPER, "keeper")):
        yield ours(name, "process_subject", subject)


BENCH = Bench(
    "process",
    "The floors are a start without a keeper, and the same killing by hand.",
    measures,
    contenders,
    plots=(
        Plot("lines", "proof", "From the end of the grace to the last proof, by hard trees", key="seconds"),
    ),
)
