"""Where the microseconds of a child go: the processor's time by the room whose code it is spent in.

What a library does for a room (msgspec, sqlite3, the SDK's own spans) is that room's; what no room is on the
stack for is the event loop's.
``python -m bench.profile_subject {asyncio|trio} [--spans]`` names the functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import LOOPS, Bench, Measure, Plot

SOURCE = Path(__file__).parents[1] / "src" / "custodes"
SIZE = 1_000
LOOP, COLLECTING, WHOLE = "the event loop", "collections of cycles", "the whole"
GROUPED = "supervision"
"""The room that is told by its own rooms."""


def rooms() -> tuple[str, ...]:
    """Every room, from the source."""
    found = [each.name for each in sorted(SOURCE.iterdir()) if (each / "__init__.py").exists()]
    inner = [
        f"{GROUPED}/{each.name}" for each in sorted((SOURCE / GROUPED).iterdir()) if any(each.glob("*.py"))
    ]
    return (*(each for each in found if each not in ("cli", "hub", "mcp", "overseer")), *inner)


def measures(_: bool) -> Iterator[Measure]:
    for name in (WHOLE, *rooms(), LOOP, COLLECTING):
        yield Measure("fan-out", SIZE, name, key=f"{name}_s")


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"custodes, {loop}", "profile_subject", loop, "--serve")
        yield ours(f"custodes, {loop}, spans", "profile_subject", loop, "--serve", "--spans")


BENCH = Bench(
    "profile",
    "The processor's time of a child, by whose code it is spent in.",
    measures,
    contenders,
    plots=(
        Plot(
            "cases",
            "custodes, asyncio",
            "Where the processor's time of a child goes (asyncio, no spans)",
            key="",
        ),
        Plot(
            "cases", "custodes, trio", "Where the processor's time of a child goes (trio, no spans)", key=""
        ),
    ),
)
