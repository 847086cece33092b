"""A fan-out that is looked at while it runs: the contender of ``bench/profile.py``.

    python -m bench.profile_subject {asyncio|trio} [--spans] [--functions 30]

By itself it prints the functions of ours that most of the time is spent in or under.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType

import anyio

from bench.dispatch_subject import conversation, install, side_by_side, trace
from bench.profile import COLLECTING, GROUPED, LOOP, SIZE, SOURCE, WHOLE, rooms
from bench.suite.contender import Figures, serve
from bench.suite.sampler import Sampler
from bench.suite.table import table
from bench.suite.words import amount

WARM = 200
FAN_OUTS = 3
"""As many as make some 500 looks, at the 250 ticks a second of a common kernel."""


def room(frame: FrameType) -> set[str]:
    """The room of the innermost frame of ours."""
    innermost: FrameType | None = frame
    while innermost is not None:
        if (place := _place(innermost)) is not None:
            parts = place.parts
            return {f"{GROUPED}/{parts[1]}" if parts[0] == GROUPED and len(parts) > 2 else parts[0]}
        innermost = innermost.f_back
    return {LOOP}


def functions(frame: FrameType) -> set[str]:
    """Every function of ours on the stack."""
    found = set()
    above: FrameType | None = frame
    while above is not None:
        if (place := _place(above)) is not None:
            found.add(f"{place.as_posix()}: {above.f_code.co_qualname}")
        above = above.f_back
    return found


def _place(frame: FrameType) -> Path | None:
    """The file of ours that a frame is in, from the package on."""
    file = frame.f_code.co_filename
    return Path(file).relative_to(SOURCE) if file.startswith(str(SOURCE)) else None


async def looked_at(project: Path, sampler: Sampler, size: int) -> None:
    async with conversation(project) as parent:
        await side_by_side(parent, WARM)
        with sampler.looking():
            for _ in range(FAN_OUTS):
                await side_by_side(parent, size)


def by_room(project: Path, backend: str, size: int) -> Figures:
    sampler = Sampler(room)
    anyio.run(looked_at, project, sampler, size, backend=backend)
    told = dict.fromkeys((*rooms(), LOOP), 0.0) | sampler.seconds
    told |= {COLLECTING: sampler.collecting, WHOLE: sampler.total}
    return {f"{name}_s": seconds / (size * FAN_OUTS) for name, seconds in told.items()}


def by_function(project: Path, backend: str, most: int) -> None:
    sampler = Sampler(functions)
    anyio.run(looked_at, project, sampler, SIZE, backend=backend)
    ranked = sorted(sampler.seconds.items(), key=lambda each: -each[1])[:most]
    rows = [
        [name, amount(seconds / (SIZE * FAN_OUTS), "cpu"), f"{seconds / sampler.total:.0%}"]
        for name, seconds in ranked
    ]
    print("\n".join(table(["in or under", "a child", "of the whole"], rows, frozenset({1, 2}))))


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the processor's time of a child goes.")
    parser.add_argument("backend", choices=["asyncio", "trio"])
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--functions", type=int, default=30, help="how many are named")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.spans:
        trace()
    with tempfile.TemporaryDirectory() as folder:
        project = install(Path(folder))
        if asked.serve:
            serve(version("custodes"), {"fan-out": partial(by_room, project, asked.backend)})
        else:
            by_function(project, asked.backend, asked.functions)


if __name__ == "__main__":
    main()
