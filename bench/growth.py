"""What grows with what: children in a fan-out, pools at once, rows on record.

    python bench/growth.py [--quick] [--rounds 3] [--json FILE]

The cost for each child of 10 to 10,000 and for each pool of 1 to 1,000 should stay what it is; a look at the
record, and the start of a host, should not know how many rows of others there are: 0, 10,000, a million.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.contest import Contender, Measure, hold, options

MS = ("ms", 1e-3)


def measures(quick: bool, rounds: int) -> Iterator[Measure]:
    for size in (10, 100, 1_000, *(() if quick else (10_000,))):
        yield Measure("children", size, f"a child of {size:,}", rounds if size < 10_000 else 1)
    for size in (1, 10, 100, 1_000):
        yield Measure("pools", size, f"admission and settle, a pool of {size:,}", rounds)
    for rows in (0, 10_000, *(() if quick else (1_000_000,))):
        yield Measure("history", rows, f"routing's history, {rows:,} rows", rounds, unit=MS)
        yield Measure("conversation", rows, f"trace of a conversation of 100, {rows:,} rows", rounds, unit=MS)
        yield Measure("latest", rows, f"the newest 20 runs, {rows:,} rows", rounds, unit=MS)
        yield Measure("start", rows, f"a host's start to its first outcome, {rows:,} rows", rounds, unit=MS)


def contenders(_: Path | None) -> Iterator[Contender]:
    for backend in ("asyncio", "trio"):
        yield Contender(f"custodes, {backend}", [sys.executable, "-m", "bench.growth_subject", backend])


if __name__ == "__main__":
    hold(options("What grows with what.").parse_args(), measures, contenders)
