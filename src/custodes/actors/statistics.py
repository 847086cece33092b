"""What can be seen of a running tree, without asking it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "running", "stopping", "waiting", "ended"]
"""``waiting``: between two incarnations, to be restarted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorStatistics:
    path: str
    state: State
    mailbox_depth: int  #: messages that wait
    mailbox_size: int  #: messages that may wait
    handled: int  #: messages answered or done with, over all incarnations
    unhandled: int  #: messages of a type it has no handler for
    refused: int  #: messages that found the mailbox full
    undelivered: int  #: messages accepted and failed unread, since their incarnation was lost
    restarts: int
    overran: bool  #: told to stop, and still at its clean-up past its bound


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorStatistics:
    path: str
    state: State
    strategy: str
    restarts: int  #: restarts of this supervisor by its own parent
    crashes: int  #: crashes it answered with a restart, ever
    crashes_in_period: int  #: of those, how many count against the intensity as it stands
    started: int  #: children ever started here, restarts not counted
    dynamic_below: int  #: dynamic children alive here and below: what its cap counts
    children: tuple[ActorStatistics | SupervisorStatistics, ...]
