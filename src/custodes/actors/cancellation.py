"""How something comes to its end: asked for once, reached once, and the same for everyone who waits.

The first reason wins. Whoever asks later, or asks after the end, waits for the same end and gets the
same answer; a stop that loses the race against a natural end learns how it ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, NamedTuple

import anyio

logger = logging.getLogger("custodes.actors")

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
    __slots__ = ("_monitors", "_reached", "end", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        """The first reason given, or None where nobody has asked."""
        self.end: ChildEnd | None = None
        # Made only if somebody waits or looks on: most children end unwatched.
        self._reached: anyio.Event | None = None
        self._monitors: list[Callable[[ChildEnd], object]] | None = None

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
        for monitor in self._monitors or ():
            _call(monitor, end)
        self._monitors = None

    def monitor(self, monitor: Callable[[ChildEnd], object]) -> None:
        """Call it once with the end: as soon as that is reached, or now where it has been."""
        if self.end is not None:
            _call(monitor, self.end)
        elif self._monitors is None:
            self._monitors = [monitor]
        else:
            self._monitors.append(monitor)

    async def wait(self) -> ChildEnd:
        while self.end is None:
            if self._reached is None:
                self._reached = anyio.Event()
            await self._reached.wait()
        return self.end


def _call(monitor: Callable[[ChildEnd], object], end: ChildEnd) -> None:
    try:
        monitor(end)
    except Exception:  # it is no part of the tree, and takes nothing down with it
        logger.exception("a monitor of %s raised", end.path)
