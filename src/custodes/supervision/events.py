"""What happens in a conversation, as typed events for hosts, progress trees and logs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from custodes.adapters.port import Failure, PermissionAnswer, Progress
from custodes.supervision.work import Outcome, Refusal


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """``at`` is wall time in seconds since the epoch. ``sequence`` numbers the events of a conversation from
    1, in the order they are told; 0 is an event that was never told."""

    at: float
    conversation: str
    run_id: str
    sequence: int = 0


class ChildQueued(Event, frozen=True, kw_only=True, tag="child_queued"):
    """``parent_run`` is the run whose own processes asked for it; None for a child of the conversation's."""

    role: str
    name: str
    parent_run: str | None = None


class ChildWaiting(Event, frozen=True, kw_only=True, tag="child_waiting"):
    """``reason`` is ``slot``, ``scope`` or ``recovery`` (then ``seconds`` says how long)."""

    reason: str
    seconds: float | None = None


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    number: int
    adapter: str
    model: str | None
    effort: str | None
    pool: str
    probe: bool
    fallback_reason: str | None = None
    repair: bool = False


class AttemptProgress(Event, frozen=True, kw_only=True, tag="attempt_progress"):
    number: int
    progress: Progress


class PermissionAsked(Event, frozen=True, kw_only=True, tag="permission_asked"):
    """The child's runtime wants leave for something. Denied after ``seconds``; ``ask`` is the id to answer
    by. ``depth`` is the level of the child: 1 is the conversation's own. ``detail`` may hold a secret."""

    ask: str
    tool: str
    detail: str
    seconds: float
    depth: int


class PermissionAnswered(Event, frozen=True, kw_only=True, tag="permission_answered"):
    """``by`` says whose answer it is: the host's, a surface's, or the deadline's."""

    ask: str
    answer: PermissionAnswer
    by: str


class AttemptRefused(Event, frozen=True, kw_only=True, tag="attempt_refused"):
    """The attempt was not let in, and why. The child waits for the recovery, or else ends refused: what is
    told next of it says which."""

    refusal: Refusal


class AttemptEnded(Event, frozen=True, kw_only=True, tag="attempt_ended"):
    number: int
    pool: str
    seconds: float
    failure: Failure | None = None


class ChildEnded(Event, frozen=True, kw_only=True, tag="child_ended"):
    outcome: Outcome


class EventsMissed(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="events_missed"):
    """Told to one slow reader alone: the events from number ``first`` to ``last`` had left the window."""

    conversation: str
    first: int
    last: int

    @property
    def sequence(self) -> int:
        """The number to go on from."""
        return self.last


Observer = Callable[[Event], None]
"""Called in the order of events, from the conversation's tasks; returns at once and never raises."""
