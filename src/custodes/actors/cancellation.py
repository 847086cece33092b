"""How something comes to its end: asked for once, reached once, and the same for everyone who waits.

The first reason wins. Whoever asks later, or asks after the end, waits for the same end and gets the
same answer; a stop that loses the race against a natural end learns how it ended.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import anyio

Outcome = Literal["completed", "stopped", "crashed"]


class ChildEnd(NamedTuple):
    """The one terminal record of a child.

    ``completed``: it ended by itself. ``stopped``: it was told to, for ``reason``. ``crashed``: it raised
    ``cause``, be it by itself or in its clean-up after it was told to stop (then ``reason`` is set too).
    """

    path: str
    outcome: Outcome
    reason: str | None = None
    cause: BaseException | None = None
    overran: bool = False
    """Its clean-up was cut off at its bound, or outlived it."""


class Ending:
    __slots__ = ("_reached", "end", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        """The first reason given, or None where nobody has asked."""
        self.end: ChildEnd | None = None
        self._reached: anyio.Event | None = None  # made only if somebody waits: most children end unwatched

    def request(self, reason: str) -> bool:
        """Whether this request was the first, and came before the end."""
        if self.reason is not None or self.end is not None:
            return False
        self.reason = reason
        return True

    def reach(self, end: ChildEnd) -> None:
        if self.end is not None:
            raise RuntimeError(f"{end.path} ended twice")
        self.end = end
        if self._reached is not None:
            self._reached.set()

    async def wait(self) -> ChildEnd:
        while self.end is None:
            if self._reached is None:
                self._reached = anyio.Event()
            await self._reached.wait()
        return self.end
