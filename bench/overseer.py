"""What a day of the watch over providers costs: 288 ticks, five minutes apart, four profiles and providers.

Everything is the overseer's own, its database with its commits included; only the providers' answers, the
profiles and the clock are scripted. In a day one provider is limited, one dies and heals, one wants a
person, one flaps. A week is held against a day: a tick should not know how many came before it. No tick may
cost a token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import LOOPS, Base, Bench, Measure, Target

DAY = 288
WEEK = 7 * DAY
OURS = tuple(f"custodes, {loop}" for loop in LOOPS)


def measures(quick: bool) -> Iterator[Measure]:
    yield Measure("ticks", DAY, "a tick, over a day")
    none = tuple(Target(name, 0, absolute=True) for name in OURS)
    yield Measure("ticks", DAY, "completions sent in a day", key="completions", targets=none)
    yield Measure("ticks", DAY, "questions asked in a day", key="questions")
    yield Measure("ticks", DAY, "switches in a day", key="switches")
    if not quick:
        flat = tuple(Target(name, 1.3) for name in OURS)
        yield Measure("ticks", WEEK, "a tick, over a week", rounds=2, base=Base(size=DAY), targets=flat)
        yield Measure("ticks", WEEK, "memory that a week leaves", key="left_bytes", rounds=2)


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"custodes, {loop}", "overseer_subject", loop)


BENCH = Bench(
    "overseer",
    "A tick asks every provider that is due, decides, switches and keeps it.",
    measures,
    contenders,
)
