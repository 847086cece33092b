"""What each command of ``cos`` takes from its start to its end, beside the interpreter that does nothing.

    python bench/startup.py [--quick] [--rounds 5] [--json FILE]

A figure is the quickest of three starts: what the machine does besides only ever adds. The project is a small
one with one adapter.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.contest import Contender, Measure, hold, options
from bench.startup_subject import COMMANDS

STARTS = 3
FLOOR = "python -c pass"


def measures(quick: bool, rounds: int) -> Iterator[Measure]:  # noqa: ARG001 - nothing of it is large
    for command in COMMANDS:
        yield Measure(command, STARTS, f"cos {command}", rounds, unit=("ms", 1e-3), base=FLOOR)


def contenders(_: Path | None) -> Iterator[Contender]:
    yield Contender(FLOOR, [sys.executable, "-m", "bench.startup_subject", "python"])
    yield Contender("cos", [sys.executable, "-m", "bench.startup_subject", "cos"])


if __name__ == "__main__":
    hold(options("What each command's start costs, as ratios.").parse_args(), measures, contenders)
