"""One writer a scope: what a child may change, as real places, and which claims take turns.

A scope is a set of places. Two places conflict where one contains the other, after symlinks, ``..`` and
the file system's own case folding are resolved; but not across the border of a repository nested in
another one, whose work tree is its own (acceptance F11).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from custodes.paths import there


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


def outside(project: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these paths that do not lie in the project, as they were named. Nothing forbids them; but its
    store alone knows who writes there, so that work of another project takes no turns with it.

    :raises OSError, ValueError: a name is no path.
    """
    project = Path(os.path.realpath(project))
    whole = _place(project, project).parts
    return tuple(name for name in names if _place(project / name, project).parts[: len(whole)] != whole)


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
    existing = next((folder for folder in (path, *path.parents) if there(folder)), None)
    while existing is not None and existing.name.swapcase() == existing.name and existing != existing.parent:
        existing = existing.parent
    if existing is None or existing == existing.parent:
        return False
    swapped = existing.with_name(existing.name.swapcase())
    try:
        return swapped.samefile(existing)
    except OSError:
        return False


class Claim(Protocol):
    """A place in a line of writers. ``parent_run`` is the nearest run it was started under that holds a scope
    itself: it borrows inside of that."""

    @property
    def run_id(self) -> str: ...
    @property
    def parent_run(self) -> str | None: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def held(self) -> bool: ...


C = TypeVar("C", bound=Claim)


def above(claim: Claim, line: Iterable[C]) -> list[C]:
    """The claims that are held by the runs this one was started under, the nearest first."""
    if claim.parent_run is None:  # nearly every claim; the line may be long
        return []
    held = {other.run_id: other for other in line if other.held}
    found: list[C] = []
    lender = held.get(claim.parent_run)
    while lender is not None and lender not in found:
        found.append(lender)
        lender = held.get(lender.parent_run or "")
    return found


def reaches_outside(claim: Claim, line: Iterable[Claim]) -> bool:
    """Whether it wants what the nearest work above it does not hold: it can never be given that.

    Whoever is above waits for this claim, holding a scope. Were it let wait for a scope outside that one,
    two such pairs could wait for each other. So what is held inside a scope is borrowed from inside it, at
    every level: all that one may have to wait for there has been borrowed there, too, and waits only for
    what is borrowed from itself. That is a tree, and has no cycle. Where nobody above holds anything, one
    waits like a work of nobody's, and what it waits for waits downwards only.
    """
    lenders = above(claim, line)
    return bool(lenders) and not covers(lenders[0].scope, claim.scope)


def blocks(other: Claim, claim: Claim, *, ahead: bool, line: Collection[Claim]) -> bool:
    """Whether a claim has to wait for another one, which holds or waits; ``ahead``: it waits before it.

    A borrower waits for its siblings, and not for those who wait for its lender.
    """
    if not conflicts(other.scope, claim.scope):
        return False
    lenders = {lender.run_id for lender in above(claim, line)}
    if other.held:
        return other.run_id not in lenders
    return ahead and (not lenders or any(each.run_id in lenders for each in above(other, line)))


class ScopeOutsideError(Exception):
    """A nested writer wants more than the work it was started by may write itself."""

    def __init__(self) -> None:
        super().__init__(
            "its scope reaches outside that of the work it was started by, which waits for it; "
            "a scope inside that one would work"
        )
