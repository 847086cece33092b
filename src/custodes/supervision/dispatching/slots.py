"""Slots: how many attempts work at once, and who gets the next one.

Parents that come back to go on have waited longest and hold most, so they come first; then nested work,
which a parent waits for; then new work. Within each it is first come, first served; the children of a fan-out
that only read stand in its own line, and its first here. Nobody who holds a slot waits for anything but its
own runtime (one whose nested work is pending gives its slots up) and, before it begins, its conversation's
supervisor; where an attempt needs several they are taken in one order: so no two can wait for each other.

anyio's own limiter has one queue for all, which cannot tell them apart.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

import anyio

Rank = Literal["returning", "nested", "new"]
_RANKS: tuple[Rank, ...] = ("returning", "nested", "new")


class Slots:
    """``limit`` may be changed at any time; what is taken beyond a lowered one is left to end by itself."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._waiting: dict[Rank, deque[anyio.Event]] = {rank: deque() for rank in _RANKS}

    @property
    def limit(self) -> int:
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = limit
        self._admit()

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def waiting(self) -> int:
        return sum(len(each) for each in self._waiting.values())

    @property
    def full(self) -> bool:
        """Whether new work would wait."""
        return self._taken >= self._limit or any(self._waiting.values())

    async def take(self, rank: Rank = "new") -> None:
        """Wait for a slot. Cancelled while waiting, none is taken. One that is free is taken at once."""
        if self._taken < self._limit and not self._before(rank):
            self._taken += 1
            return
        turn = anyio.Event()
        self._waiting[rank].append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # it was given one in the same moment
                self.give_back()
            else:
                self._waiting[rank].remove(turn)
            raise

    def take_beyond(self) -> None:
        """Take one whether or not there is room."""
        self._taken += 1

    def give_back(self) -> None:
        self._taken -= 1
        self._admit()

    def _before(self, rank: Rank) -> bool:
        """Whether somebody waits who comes before a newcomer of this rank."""
        if not any(self._waiting.values()):
            return False
        return any(self._waiting[each] for each in _RANKS[: _RANKS.index(rank) + 1])

    def _admit(self) -> None:
        for rank in _RANKS:
            while self._waiting[rank] and self._taken < self._limit:
                self._taken += 1
                self._waiting[rank].popleft().set()


class Places:
    """The slots that one attempt works in, taken in the order given: the fan-out's own first, the host's
    last."""

    def __init__(self, *slots: Slots) -> None:
        self._slots = slots
        self._held: list[Slots] = []
        self._taking = False

    @property
    def full(self) -> bool:
        return any(slots.full for slots in self._slots)

    @property
    def held(self) -> bool:
        return bool(self._held)

    async def take(self, rank: Rank = "new") -> None:
        """Wait for all of them. Cancelled meanwhile, none is held."""
        self._taking = True
        try:
            for slots in self._slots:
                await slots.take(rank)
                self._held.append(slots)
        except BaseException:
            self._release()
            raise
        finally:
            self._taking = False

    def take_beyond(self) -> None:
        """Take all of them whether or not there is room."""
        for slots in self._slots:
            slots.take_beyond()
            self._held.append(slots)

    def give_back(self) -> None:
        """Idempotent. Of no effect while they are being taken: what was part of them is never given back
        alone, so that whoever has taken them holds all."""
        if not self._taking:
            self._release()

    def _release(self) -> None:
        while self._held:
            self._held.pop().give_back()


class Room:
    """All that one piece of work needs to run: its place among those alive, then the slots that its attempts
    work in."""

    def __init__(self, alive: Slots, *slots: Slots | None) -> None:
        self.alive = Places(alive)
        self.slots = Places(*(each for each in slots if each is not None))

    @property
    def full(self) -> bool:
        """Whether new work would wait."""
        return self.alive.full or self.slots.full

    async def take(self) -> None:
        """Wait for it, as new work. Cancelled meanwhile, none of it is held."""
        await self.alive.take()
        try:
            await self.slots.take()
        except BaseException:
            self.alive.give_back()
            raise

    def give_back(self) -> None:
        """Idempotent, as for its parts."""
        self.slots.give_back()
        self.alive.give_back()
