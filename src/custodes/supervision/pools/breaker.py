"""The pool's one rule, pure: ``decide(pool, event, now)`` gives the pool as it then is, and the answer.

A pool is *healthy* (no deadline) or *sick* (one deadline, passed or not). It lets in::

    healthy                                     everybody, with a ticket of its generation
    sick, the deadline ahead                    nobody          -> refused, the wait
    sick, the deadline passed, a lease lives    nobody          -> refused, what is left of the lease
    sick, the deadline passed, no live lease    one: the probe  -> a ticket with its own lease

What a ticket may change when it comes back. A ticket is *the probe* while the pool's lease is its own and
lives; *fenced* where it had a lease and is not the probe; else an ordinary one: *current*, of the pool's
generation, or *old*. A probe that was confirmed is an ordinary one from then on. ::

                 the probe                 current (so: healthy)     old                       fenced
    confirmed    heals                     -                         -                         -
    success      heals                     -                         -                         -
    limit        count + 1, opens          count + 1, opens          -                         -
      stated     count + 1, opens          count + 1, opens          healthy: opens            -
                                                                     sick: lengthens
    overload     lease ends, mark          mark                      mark                      -
    anything     lease ends                -                         -                         -

*Heals*: no deadline, no lease, count 0. *Opens*: generation + 1, no lease, and the later of the old deadline
and the new one. *Lengthens*: the later deadline; count, generation and a living lease stay. *Clear* (an
operator's): generation + 1 and everything else as new.

What follows: a burst counts once (the first report makes the others' tickets old); nothing but a heal or a
clear ends a wait early; an old ticket's success heals nothing; a probe that ends in whatever way leaves the
pool due for one probe again, and its count as it was; a lease that ends without a word is void.
"""

from __future__ import annotations

from typing import overload

import msgspec

from custodes.adapters.port import Failure
from custodes.policy.policy import Cooldown
from custodes.supervision.record.clock import Deadline, Now, after, later
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.work import PoolState

MARK_LEAST_S = 10
MARK_MOST_S = 60
"""An overload mark lasts for the provider's stated wait within these seconds. It never escalates."""


class Lease(msgspec.Struct, frozen=True):
    """The one probe's right to run, up to a deadline. ``id`` is that of its attempt."""

    id: str
    owner: Owner
    deadline: Deadline


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """``mark`` says that its provider was overloaded: nothing of ours, only a reason to prefer another.

    ``reason`` is composed by us, and empty where the pool is healthy.
    """

    name: str
    generation: int = 0
    failure_count: int = 0
    deadline: Deadline | None = None
    lease: Lease | None = None
    mark: Deadline | None = None
    reason: str = ""

    def state(self, now: Now) -> PoolState:
        """``half_open`` also where it is due for a probe that nobody has asked for yet."""
        if self.deadline is None:
            return "healthy"
        if self.lease_remaining(now) > 0 or self.deadline.remaining(now) <= 0:
            return "half_open"
        return "cooling_down"

    def recovery(self, now: Now) -> float:
        """Seconds until it may let somebody in; 0 where it does."""
        if self.deadline is None:
            return 0.0
        return max(self.deadline.remaining(now), self.lease_remaining(now))

    def lease_remaining(self, now: Now) -> float:
        return 0.0 if self.lease is None else self.lease.deadline.remaining(now)

    def marked(self, now: Now) -> bool:
        return self.mark is not None and self.mark.remaining(now) > 0


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """The right to run one attempt. ``lease_id`` is set for the probe only; ``attempt`` is its row's id;
    ``cooldown`` the policy it was admitted under, ``begun`` the moment, from which its length is measured."""

    pool: str
    generation: int
    attempt: str
    lease_id: str | None = None
    cooldown: Cooldown = Cooldown()
    begun: Now | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """``lease_s``, in seconds, covers the whole attempt with its end. ``holder_dead`` says that the owner of
    the pool's present lease is proven dead."""

    attempt: str
    owner: Owner
    lease_s: float
    cooldown: Cooldown = Cooldown()
    holder_dead: bool = False


class Confirmed(msgspec.Struct, frozen=True):
    """The first model output of the ticket's attempt."""

    ticket: Ticket


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt has ended. ``confirmed`` says that it had confirmed its probe before; a caller's own
    cancel says nothing of the pool."""

    ticket: Ticket
    failure: Failure | None = None
    cancelled: bool = False
    confirmed: bool = False


class Cleared(msgspec.Struct, frozen=True):
    """An operator's word that the limit is over."""


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """``recovery`` in seconds, above 0."""

    state: PoolState
    recovery: float


Event = Ask | Confirmed | Settled | Cleared
Answer = Ticket | Denied | bool
"""To an ask a ticket or a denial; to anything else whether it changed the pool."""


@overload
def decide(pool: Pool, event: Ask, now: Now) -> tuple[Pool, Ticket | Denied]: ...
@overload
def decide(pool: Pool, event: Confirmed | Settled | Cleared, now: Now) -> tuple[Pool, bool]: ...
def decide(pool: Pool, event: Event, now: Now) -> tuple[Pool, Answer]:
    """The rule (see the module). The pool comes back as it is (the same object) where nothing changed."""
    pool = _anchored(pool, now)
    match event:
        case Ask():
            return _ask(pool, event, now)
        case Confirmed():
            then = _healed(pool) if _is_probe(pool, event.ticket, now) else pool
        case Settled():
            then = _settle(pool, event, now)
        case Cleared():
            then = Pool(name=pool.name, generation=pool.generation + 1)
    return then, then is not pool


def backoff(failure_count: int, cooldown: Cooldown) -> float:
    """Our own wait, in seconds, after so many limits in a row: doubled each time, up to the maximum.

    (Seed: exponential cooldown starts at the configured default and is capped by the configured maximum.)
    """
    doublings = min(failure_count - 1, 32)  # far above any maximum, and no float ever overflows
    return float(min(cooldown.default_seconds * 2**doublings, cooldown.maximum_seconds))


def _ask(pool: Pool, ask: Ask, now: Now) -> tuple[Pool, Ticket | Denied]:
    ticket = Ticket(pool=pool.name, generation=pool.generation, attempt=ask.attempt, cooldown=ask.cooldown)
    if pool.deadline is None:
        return pool, ticket
    if ask.holder_dead and pool.lease is not None:
        pool = msgspec.structs.replace(pool, lease=None)
    if (recovery := pool.recovery(now)) > 0:
        return pool, Denied(state=pool.state(now), recovery=recovery)
    lease = Lease(ask.attempt, ask.owner, after(ask.lease_s, now))
    return (
        msgspec.structs.replace(pool, lease=lease),
        msgspec.structs.replace(ticket, lease_id=lease.id),
    )


def _settle(pool: Pool, event: Settled, now: Now) -> Pool:
    ticket, failure = event.ticket, None if event.cancelled else event.failure
    probe = _is_probe(pool, ticket, now)
    if ticket.lease_id is not None and not probe and not event.confirmed:
        return pool  # fenced
    if failure is None:
        if not probe:
            return pool
        return _without_lease(pool) if event.cancelled else _healed(pool)
    if failure.overloaded:
        stated = failure.retry_after_s or 0
        mark = after(min(max(stated, MARK_LEAST_S), MARK_MOST_S), now)
        return msgspec.structs.replace(
            _without_lease(pool) if probe else pool, mark=later(pool.mark, mark, now)
        )
    if failure.category == "capacity" and failure.retryable:
        counts = probe or ticket.generation == pool.generation
        return _limited(pool, failure.retry_after_s or 0, ticket.cooldown, counts, now)
    return _without_lease(pool) if probe else pool


def _limited(pool: Pool, stated: int, cooldown: Cooldown, counts: bool, now: Now) -> Pool:
    """A limit was reported. ``stated`` is the provider's own wait in seconds, 0 where it stated none."""
    count = pool.failure_count + 1 if counts else pool.failure_count
    if stated > 0:
        deadline = after(float(min(stated, cooldown.retry_after_ceiling_seconds)), now)
    elif counts:
        deadline = after(backoff(count, cooldown), now)
    else:
        return pool  # a bare limit of before: the wait it asks for has been running since
    deadline = later(pool.deadline, deadline, now)
    if not counts and pool.deadline is not None:
        return (
            pool
            if deadline is pool.deadline
            else msgspec.structs.replace(pool, deadline=deadline, reason=_reason(pool.name, deadline))
        )
    return msgspec.structs.replace(
        pool,
        generation=pool.generation + 1,
        failure_count=count,
        deadline=deadline,
        lease=None,
        reason=_reason(pool.name, deadline),
    )


def _reason(name: str, deadline: Deadline) -> str:
    return f"capacity limit on {name}, {deadline.length:.0f} s"


def _is_probe(pool: Pool, ticket: Ticket, now: Now) -> bool:
    return pool.lease is not None and pool.lease.id == ticket.lease_id and pool.lease_remaining(now) > 0


def _healed(pool: Pool) -> Pool:
    return Pool(name=pool.name, generation=pool.generation, mark=pool.mark)


def _without_lease(pool: Pool) -> Pool:
    return msgspec.structs.replace(pool, lease=None)


def _anchored(pool: Pool, now: Now) -> Pool:
    """After a reboot: every time of the pool on this boot's clock."""
    times = (pool.deadline, pool.mark, None if pool.lease is None else pool.lease.deadline)
    if all(time is None or time.boot == now.boot for time in times):
        return pool
    lease = pool.lease and msgspec.structs.replace(pool.lease, deadline=pool.lease.deadline.anchored(now))
    return msgspec.structs.replace(
        pool,
        deadline=pool.deadline and pool.deadline.anchored(now),
        lease=lease,
        mark=pool.mark and pool.mark.anchored(now),
    )
