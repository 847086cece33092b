"""A native program by its name on PATH, asked for at every admission.

It is `shutil.which`'s answer. What that found is looked at again instead of searched for anew: as long as the
same file stands there and may be run, and none of that name stands before it on PATH, the answer is the same.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from custodes.adapters.manifest import Identity, identity

_known: dict[tuple[str, str], tuple[Program, tuple[str, ...]]] = {}


class Program(NamedTuple):
    """``place`` is where PATH leads to, ``real`` the file behind every link."""

    place: str
    real: str
    at: Identity | None


def find_program(name: str, path: str | None) -> Program | None:
    """The program, or None where PATH has none that may be run. ``path`` is PATH, None where it is unset."""
    known = None if path is None else _known.get((name, path))
    if known is not None:
        program, before = known
        if (
            os.access(program.place, os.X_OK)
            and identity(program.place) == program.at
            and not any(map(os.path.lexists, before))
        ):
            return program
    place = shutil.which(name, path=path)
    if place is None:
        return None
    program = Program(place, os.path.realpath(place), identity(place))
    if path is not None:
        places = [] if os.path.dirname(name) else path.split(os.pathsep)  # noqa: PTH120 - as `which` does it
        candidates = [os.path.join(each, name) for each in places]  # noqa: PTH118
        first = candidates.index(place) if place in candidates else 0
        _known[name, path] = (program, tuple(candidates[:first]))
    return program
