"""What an admission costs, and who keeps a half-open door.

The floor is the same reads and writes by hand: the standard library's sqlite3 in a worker thread, the same
pragmas and the same SQL, no actor, no rule. The peers are other breakers: what guarding one call costs with
each, in memory and for one process, and how many of 50 callers it lets through once a wait is over, before
the first of them has an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours, peer
from bench.suite.measure import LOOPS, Base, Bench, Measure, Plot, Target

CALLERS = 50
CALLS = 40
CROWD = 1_000
PEERS = {
    "purgatory-circuitbreaker": "purgatory",
    "pybreaker": "pybreaker",
    "aiobreaker": "aiobreaker",
    "litellm": "LiteLLM router",
}
OURS = tuple(f"custodes, {loop}" for loop in LOOPS)


def measures(_: bool) -> Iterator[Measure]:
    for loop in LOOPS:
        mine, floor = f"custodes, {loop}", f"by hand, {loop}"
        yield Measure(
            "call",
            CALLS,
            f"admission and settle of one call, {loop}",
            among=(mine, floor),
            base=Base(floor),
            targets=(Target(mine, 1.5, floor=floor),),
        )
    yield Measure("an admission alone", CALLS, "an admission alone", among=OURS)
    yield Measure(
        "at once",
        CROWD,
        f"each of {CROWD:,} admissions at once",
        base=Base(case="an admission alone", size=CALLS),
        targets=tuple(Target(name, 0.2) for name in OURS),
    )
    yield Measure(
        "stall",
        CROWD,
        f"longest stall of the loop while {CROWD:,} pools are written",
        targets=tuple(Target(name, 0.005, absolute=True) for name in OURS),
    )
    yield Measure("rule", 20_000, "the rule alone, an ask and its settle, in memory", among=OURS[:1])
    yield Measure("guard", 2_000, "guarding one call")
    yield Measure(
        "door",
        CALLERS,
        f"let through a half-open door, of {CALLERS}",
        key="through",
        rounds=1,
        targets=tuple(Target(name, 1, absolute=True) for name in OURS),
    )


def contenders(_: ExitStack, peers_in: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"by hand, {loop}", "health_subject", "hand", loop)
        yield ours(f"custodes, {loop}", "health_subject", "custodes", loop)
    for package, name in PEERS.items():
        yield from peer(name, package, "health_peers", peers_in)


BENCH = Bench(
    "health",
    "The floor is the same statements by hand; the peers keep their state in memory, for one process.",
    measures,
    contenders,
    plots=(Plot("bars", "guard", "Guarding one call: the processor's time", 2_000),),
)
