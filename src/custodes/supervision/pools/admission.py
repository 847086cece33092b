"""What is said to the health actor, and what it answers."""

from __future__ import annotations

import msgspec

from custodes.actors import Message
from custodes.adapters.port import Failure
from custodes.policy.policy import Cooldown
from custodes.store import StoreError
from custodes.supervision.pools.breaker import Ticket
from custodes.supervision.pools.health_view import HealthView
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.records import AttemptEnd, AttemptRow, AttemptStart
from custodes.supervision.work import PoolState, Waiting
from custodes.telemetry import Lineage


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Where an attempt may go. ``fingerprint`` is the adapter's readiness now, opaque; None: it has none."""

    pool: str
    adapter: str
    model: str | None = None
    effort: str | None = None
    fingerprint: str | None = None


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that no waiting mends: its adapter needs a person, or the store cannot be asked."""

    adapter: str
    pool: str
    category: str
    reason: str


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody lets it in: each pool that waits, and each candidate that is unavailable, in the order asked."""

    waiting: tuple[Waiting, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Let in: its row is on the disk, ``running``. ``candidate`` is an index into those that were asked for,
    ``before`` names those that were asked first and did not let it in, ``fallback_reason`` the category of
    what it stands in for. ``state`` is the pool's at dispatch. Settle the ticket in every path."""

    ticket: Ticket
    candidate: int
    state: PoolState
    probe: bool
    fallback_reason: str | None = None
    before: Refused = Refused()


class Admit(msgspec.Struct, Message[Admission | Refused], frozen=True, kw_only=True):
    """Ask for a ticket of the first candidate that admits; one whose provider was overloaded a moment ago
    comes after the others. Make a new message for each ask.

    ``scope_lease`` is what mutable work holds its scope by: nothing is admitted once that has ended.

    ``lease_s`` is how long a probe may take, in seconds: the attempt's timeout, the cancel's grace and the
    bound of its proof. A cancelled ask may have been granted: follow it with :class:`Withdraw`.
    """

    candidates: tuple[Candidate, ...]
    attempt: AttemptStart
    lease_s: float
    cooldown: Cooldown = Cooldown()
    scope_lease: str | None = None
    id: str = msgspec.field(default_factory=new_id)


class Withdraw(msgspec.Struct, Message[None], frozen=True):
    """Give back what the ask of this id was granted, if anything: it did not run."""

    id: str


class Confirm(msgspec.Struct, Message[None], frozen=True):
    """The first model output of an attempt. It matters for a probe only."""

    ticket: Ticket


class Traced(msgspec.Struct, Message[None], frozen=True):
    """Where an attempt stands in its trace, once all of its spans are begun."""

    ticket: Ticket
    trace: Lineage


class Settle(msgspec.Struct, Message[bool], frozen=True, kw_only=True):
    """The end of an attempt: its pool's and its row's, in one commit. Only the first one counts.

    ``cancelled`` is the caller's own cancel: nothing is recorded against the pool. Answers whether it is
    on the disk; where the store cannot be written now, it is kept and written before anything else.
    """

    ticket: Ticket
    failure: Failure | None = None
    end: AttemptEnd = AttemptEnd()
    cancelled: bool = False


class Record(msgspec.Struct, Message[None], frozen=True):
    """Write the row of work that was refused or skipped."""

    row: AttemptRow


class Clear(msgspec.Struct, Message[tuple[str, ...] | StoreError], frozen=True):
    """An operator's override: one pool (``adapter:bucket``), or every pool of an adapter and its
    unavailability. Answers the names of what was cleared, or why the store cannot. Surfaces call
    ``health_file.clear_in_file``, which writes it down."""

    target: str


class Snapshot(msgspec.Struct, Message[HealthView | StoreError], frozen=True):
    """How every pool stands now."""
