"""A child, as data: who it is, how it is made, when it is made again, how long its clean-up may take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T_co = TypeVar("T_co", covariant=True)

Restart = Literal["permanent", "transient", "temporary"]
RESTARTS: tuple[Restart, ...] = ("permanent", "transient", "temporary")


@dataclass(frozen=True)  # a generic one with slots cannot be made as ChildSpec[Worker](...) before 3.12
class ChildSpec(Generic[T_co]):
    """(Erlang/OTP, *Supervision Principles*, "Child Specification".)

    :param id: unique among its siblings; one segment of a path, so without a slash.
    :param start: makes a new actor, or a new supervisor, at each call: never the same one twice.
    :param restart: ``permanent`` is always started again, ``transient`` only after a crash, ``temporary``
        never (not even where the strategy restarts its siblings: then it is stopped and forgotten).
    :param shutdown: seconds its clean-up may take after it was told to stop, for an actor. A supervisor
        takes as long as its own children do.
    """

    id: str
    start: Callable[[], T_co]
    restart: Restart = "permanent"
    shutdown: float = 5.0

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if not self.id or "/" in self.id:
            return f"a child's id must be a non-empty text without a slash, not {self.id!r}"
        if not callable(self.start):
            return f"start must be a callable that returns an actor or a supervisor, not {self.start!r}"
        if self.restart not in RESTARTS:
            return f"restart must be one of {', '.join(RESTARTS)}, not {self.restart!r}"
        if not 0 <= self.shutdown < math.inf:
            return f"shutdown must be a finite number of seconds from 0 up, not {self.shutdown!r}"
        return None


def must_restart(restart: Restart, *, crashed: bool) -> bool:
    """Whether a child that ended by itself is to be started again."""
    return restart == "permanent" or (restart == "transient" and crashed)
