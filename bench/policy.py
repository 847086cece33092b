"""What the policy costs a host: the gate before a dispatch, the disabled path, a route, a look at adapters.

The project has the adapters of every runtime configured, so that all of their descriptors are read. The
floor of the gate is its one stat of the settings file, that of a disabled dispatch the host's own call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import LOOPS, Base, Bench, Measure, Target

CALLS = 2_000
FLOOR = "its one stat"
OURS = tuple(f"custodes, {loop}" for loop in LOOPS)


def measures(_: bool) -> Iterator[Measure]:
    stat = Base(FLOOR)
    yield Measure("gate", CALLS, "disabled: the gate", base=stat)
    yield Measure(
        "disabled",
        CALLS,
        "disabled: a dispatch",
        base=stat,
        targets=tuple(Target(name, 10e-6, absolute=True, floor=FLOOR) for name in OURS),
    )
    yield Measure("route", CALLS, "a route")
    yield Measure("discovery", CALLS, "the adapters looked at, where nothing changed")


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    yield ours(FLOOR, "policy_subject", "stat")
    for loop in LOOPS:
        yield ours(f"custodes, {loop}", "policy_subject", loop)


BENCH = Bench("policy", "The floor is one stat of the settings file.", measures, contenders)
