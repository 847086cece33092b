"""The line of this host's writers: first come, first served among those that conflict (`scopes.blocks`).

Each that waits knows one that it waits for, the latest that came before it and is in its way, and looks for
another once that one has gone. So of thousands that want one scope each waits for the one just before it, and
an end has one of them look. (Where an end has everybody look at everybody, a thousand cost a million looks.)
Whom to look at is found by place: those at a folder above, at the place itself, or below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import attrgetter

import anyio

from custodes.supervision.writers.scopes import Scope, ScopeOutsideError, blocks, reaches_outside

_number = attrgetter("number")
Parts = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Turn:
    """``behind`` is whom it waits for; ``followers`` wait for it, in the order they began to."""

    scope: Scope
    run_id: str
    parent_run: str | None
    number: int
    held: bool = False
    ready: anyio.Event = field(default_factory=anyio.Event)
    behind: Turn | None = None
    followers: dict[Turn, None] = field(default_factory=dict)


class Line:
    def __init__(self) -> None:
        self._last = 0
        self._held: dict[Turn, None] = {}
        self._borrowed: dict[Turn, None] = {}
        """Those of them that were started by work that holds a scope itself."""
        self._at: dict[Parts, list[Turn]] = {}
        self._below: dict[Parts, list[Turn]] = {}
        """By each folder above its places. Every list is in the order they came."""

    @asynccontextmanager
    async def hold(
        self, scope: Scope, run_id: str = "", parent_run: str | None = None
    ) -> AsyncIterator[None]:
        """Hold the scope for the block. Cancelled while waiting, the place in the line is given up.

        :raises ScopeOutsideError: it reaches outside that of the work it was started by.
        """
        turn = self.join(scope, run_id, parent_run)
        try:
            await turn.ready.wait()
            yield
        finally:
            self.leave(turn)

    def would_wait(self, scope: Scope, run_id: str = "", parent_run: str | None = None) -> bool:
        return self._in_the_way(Turn(scope, run_id, parent_run, self._last + 1)) is not None

    def join(self, scope: Scope, run_id: str = "", parent_run: str | None = None) -> Turn:
        """Stand at its end; ``held`` at once where nobody is in the way. Follow it with :meth:`leave`.

        :raises ScopeOutsideError: as :meth:`hold`.
        """
        turn = Turn(scope, run_id, parent_run, self._last + 1)
        if reaches_outside(turn, self._held):
            raise ScopeOutsideError
        self._last = turn.number
        self._place(turn)
        for lists, parts in self._lists(turn):
            lists.setdefault(parts, []).append(turn)
        return turn

    def leave(self, turn: Turn) -> None:
        """Whether it holds its scope or waits."""
        for lists, parts in self._lists(turn):
            turns = lists[parts]
            del turns[bisect_left(turns, turn.number, key=_number)]
            if not turns:
                del lists[parts]
        self._held.pop(turn, None)
        self._borrowed.pop(turn, None)
        if turn.behind is not None:
            del turn.behind.followers[turn]
        for follower in sorted(turn.followers, key=_number):
            self._place(follower)

    def _place(self, turn: Turn) -> None:
        turn.behind = self._in_the_way(turn)
        if turn.behind is not None:
            turn.behind.followers[turn] = None
            return
        turn.held = True
        self._held[turn] = None
        if turn.parent_run is not None:
            self._borrowed[turn] = None
        turn.ready.set()

    def _in_the_way(self, turn: Turn) -> Turn | None:
        latest: Turn | None = None
        for turns in self._near(turn.scope):
            for index in range(bisect_left(turns, turn.number, key=_number) - 1, -1, -1):
                other = turns[index]
                if latest is not None and other.number <= latest.number:
                    break
                if blocks(other, turn, ahead=True, line=self._held):
                    latest = other
        if latest is not None:
            return latest
        # Of those that came later only a borrower may hold what somebody waits for.
        later = (other for other in self._borrowed if other.number > turn.number)
        return next((other for other in later if blocks(other, turn, ahead=False, line=self._held)), None)

    def _near(self, scope: Scope) -> Iterator[list[Turn]]:
        """Those that may conflict with it: all of them, and of others some of another repository."""
        for place in scope.places:
            for depth in range(len(place.parts) + 1):
                yield self._at.get(place.parts[:depth], [])
            yield self._below.get(place.parts, [])

    def _lists(self, turn: Turn) -> Iterator[tuple[dict[Parts, list[Turn]], Parts]]:
        """Where it stands, each once."""
        places = {place.parts for place in turn.scope.places}
        yield from ((self._at, parts) for parts in places)
        folders = {place[:depth] for place in places for depth in range(len(place))}
        yield from ((self._below, parts) for parts in folders)
