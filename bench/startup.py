"""What each command of ``cos`` takes from its start to its end, beside the interpreter that does nothing.

The project is a small one with one adapter that is ready and does nothing. Those that go on by themselves are
measured to their first line, the Hub to its first answer. ``supervision show`` is held against importing what
it cannot do without, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.startup_subject import COMMANDS, FIRST
from bench.suite.contest import Contender, ours
from bench.suite.measure import Base, Bench, Measure, Plot, Target

BARE = "python -c pass"
IMPORTS = "importing what it needs"
ROUNDS = 6
"""A start cannot be made shorter, and the slowest are to be asked as often as the others."""


def measures(_: bool) -> Iterator[Measure]:
    yield Measure(
        "cold show",
        1,
        "cos supervision show, every adapter",
        rounds=ROUNDS,
        base=Base(IMPORTS),
        targets=(Target("cos", 1.25, floor=IMPORTS),),
    )
    yield Measure("nothing", 1, "the interpreter alone", rounds=ROUNDS)
    for command in COMMANDS:
        yield Measure(command, 1, f"cos {command}", rounds=ROUNDS, base=Base(BARE, "nothing"))
    for command, how_far in FIRST.items():
        yield Measure(command, 1, f"cos {command}, {how_far}", rounds=ROUNDS, base=Base(BARE, "nothing"))


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    yield ours(BARE, "startup_subject", "python")
    yield ours(IMPORTS, "startup_subject", "imports")
    yield ours("cos", "startup_subject", "cos")


BENCH = Bench(
    "startup",
    "The floors are the interpreter that does nothing, and one that imports what cos is built of.",
    measures,
    contenders,
    plots=(Plot("cases", "cos", "The processor's time of each command, from its start to its end"),),
)
