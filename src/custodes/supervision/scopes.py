"""One writer a scope: what a child may change, as real places, and the line it waits in.

A scope is a set of places. Two places conflict where one contains the other, after symlinks, ``..`` and
the file system's own case folding are resolved; but not across the border of a repository nested in
another one, whose work tree is its own (acceptance F11).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio


@dataclass(frozen=True, slots=True)
class Place:
    """A resolved path, as its parts, and the root of the repository it lies in (None: in none)."""

    parts: tuple[str, ...]
    repository: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Scope:
    """What one piece of work may change. Without places it changes nothing and conflicts with nothing."""

    places: frozenset[Place]


READ_ONLY = Scope(frozenset())


def conflicts(one: Scope, other: Scope) -> bool:
    """Whether two writers of these scopes must take turns."""
    return any(_overlap(a, b) for a in one.places for b in other.places)


def _overlap(a: Place, b: Place) -> bool:
    shorter, longer = sorted((a.parts, b.parts), key=len)
    if longer[: len(shorter)] != shorter:
        return False
    return a.repository == b.repository or a.repository is None or b.repository is None


def covers(outer: Scope, inner: Scope) -> bool:
    """Whether every place of the one lies inside a place of the other."""
    return all(
        any(b.parts[: len(a.parts)] == a.parts and _overlap(a, b) for a in outer.places) for b in inner.places
    )


def resolve(project: Path, names: Iterable[str]) -> Scope:
    """The scope that these paths name, relative to the project; the project itself where there are none.

    A path need not exist yet: what exists of it is resolved, the rest is taken as written.
    """
    project = Path(os.path.realpath(project))
    return Scope(frozenset(_place(project / name, project) for name in (tuple(names) or (".",))))


def _place(path: Path, project: Path) -> Place:
    real = Path(os.path.realpath(path))
    folders = (real, *real.parents)
    if project in folders:  # a repository around the project (a person's home, say) makes no border inside it
        folders = folders[: folders.index(project) + 1]
    repository = next((folder for folder in folders if (folder / ".git").exists()), None)
    fold = _folds_case(real)
    return Place(_parts(real, fold), None if repository is None else _parts(repository, fold))


def _parts(path: Path, fold: bool) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part).casefold() if fold else part for part in path.parts)


def _folds_case(path: Path) -> bool:
    """Whether the file system under the nearest existing ancestor takes a name in either case."""
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), None)
    while existing is not None and existing.name.swapcase() == existing.name and existing != existing.parent:
        existing = existing.parent
    if existing is None or existing == existing.parent:
        return False
    swapped = existing.with_name(existing.name.swapcase())
    try:
        return swapped.samefile(existing)
    except OSError:
        return False


class _Turn:
    __slots__ = ("holding", "ready", "scope")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.ready = anyio.Event()
        self.holding = False


class Scopes:
    """The line of this host's writers: first come, first served among those that conflict.

    A turn is given once nothing that holds, and nothing that waits before it, conflicts with it.
    """

    def __init__(self) -> None:
        self._line: list[_Turn] = []

    @asynccontextmanager
    async def hold(self, scope: Scope) -> AsyncIterator[None]:
        """Hold the scope for the block. Cancelled while waiting, the place in the line is given up."""
        turn = _Turn(scope)
        self._line.append(turn)
        try:
            self._advance()
            await turn.ready.wait()
            yield
        finally:
            self._line.remove(turn)
            self._advance()

    def would_wait(self, scope: Scope) -> bool:
        return any(conflicts(turn.scope, scope) for turn in self._line)

    def _advance(self) -> None:
        for place, turn in enumerate(self._line):
            if not turn.holding and not any(
                conflicts(before.scope, turn.scope) for before in self._line[:place]
            ):
                turn.holding = True
                turn.ready.set()
