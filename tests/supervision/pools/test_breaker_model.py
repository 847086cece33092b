"""The rule against an independent model, and in every state of a small world."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from custodes.adapters.port import Failure
from custodes.policy.policy import Cooldown
from custodes.supervision.pools.breaker import (
    Ask,
    Cleared,
    Confirmed,
    Denied,
    Lease,
    Pool,
    Settled,
    Ticket,
    decide,
)
from custodes.supervision.record.clock import Now, after
from custodes.supervision.record.owner_identity import Owner
from support.health import Clock, failed, limit, overload
from support.naive_pool import NaivePool

OWNER = Owner(1, 1.0, "boot")
POLICY = Cooldown(default_seconds=30, maximum_seconds=100, retry_after_ceiling_seconds=500)


class BreakerAgainstHistory(RuleBasedStateMachine):
    """Whatever happens in whatever order, the rule and the history agree on every question."""

    tickets: Bundle[Ticket] = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(uptime=0.0)
        self.pool = Pool(name="p")
        self.model = NaivePool(
            POLICY.default_seconds, POLICY.maximum_seconds, POLICY.retry_after_ceiling_seconds
        )
        self.made = 0
        self.confirmed: set[str] = set()

    @property
    def time(self) -> int:
        return int(self.clock.uptime)

    @rule(seconds=st.sampled_from([1, 9, 29, 30, 60, 100, 600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.pool.deadline is not None)
    @rule(early=st.sampled_from([0, 0, 0, 1]))
    def the_wait_ends(self, early: int) -> None:
        self.clock.advance(max(0.0, self.pool.recovery(self.clock()) - early))

    @rule(seconds=st.sampled_from([-7200, -1, 3600]))
    def the_wall_clock_is_stepped(self, seconds: int) -> None:
        self.clock.step_wall(seconds)

    @rule(target=tickets, lease=st.sampled_from([5, 50]))
    def ask(self, lease: int) -> MultipleResults[Ticket] | Ticket:
        self.made += 1
        attempt = f"a{self.made}"
        self.pool, answer = decide(
            self.pool, Ask(attempt=attempt, owner=OWNER, lease_s=lease, cooldown=POLICY), self.clock()
        )
        waits = self.model.recovery(self.time)
        expected = self.model.ask(attempt, lease, self.time)
        if isinstance(answer, Denied):
            assert expected is None
            assert answer.recovery == waits
            return multiple()  # nothing for the bundle
        assert expected is (answer.lease_id is not None)
        return answer

    @rule(ticket=tickets)
    def confirm(self, ticket: Ticket) -> None:
        self.pool, healed = decide(self.pool, Confirmed(ticket), self.clock())
        if healed:
            self.confirmed.add(ticket.attempt)
        self.model.confirm(ticket.attempt, self.time)

    @rule(
        ticket=consumes(tickets),
        outcome=st.sampled_from(["success", "limit", "limit", "overload", "timeout", "cancelled"]),
        stated=st.sampled_from([0, 0, 5, 40, 450, 10_000]),
    )
    def settle(self, ticket: Ticket, outcome: str, stated: int) -> None:
        failures = {
            "limit": limit(stated or None),
            "overload": overload(stated or None),
            "timeout": failed("timeout"),
        }
        event = Settled(
            ticket=ticket,
            failure=failures.get(outcome),
            cancelled=outcome == "cancelled",
            confirmed=ticket.attempt in self.confirmed,
        )
        self.pool, _ = decide(self.pool, event, self.clock())
        self.model.settle(ticket.attempt, outcome, stated, self.time)

    @rule()
    def clear(self) -> None:
        self.pool, _ = decide(self.pool, Cleared(), self.clock())
        self.model.clear(self.time)

    @invariant()
    def they_agree(self) -> None:
        now, model = self.clock(), self.model
        assert (self.pool.state(now) == "healthy") == (not model.sick())
        assert self.pool.recovery(now) == model.recovery(self.time)
        assert self.pool.failure_count == model.count()
        assert self.pool.generation == model.generation()
        assert self.pool.marked(now) == (model.marked_until() > self.time)
        live = model.live_probe(self.time)
        assert (self.pool.lease_remaining(now) > 0) == (live is not None)


BreakerAgainstHistory.TestCase.settings = settings(
    max_examples=200, stateful_step_count=50, derandomize=False
)
TestBreakerAgainstHistory = BreakerAgainstHistory.TestCase


class Held(NamedTuple):
    """A ticket that is out. ``live`` counts a probe's seconds down, apart from the pool: 0 where it was
    never a probe, or where that was taken from it."""

    ticket: Ticket
    confirmed: bool
    live: int


class Moment(NamedTuple):
    """Always seen from its own time and generation, so that the states are finitely many and the search
    has no end of ticks."""

    pool: Pool
    held: tuple[Held | None, ...]


SMALL = Cooldown(default_seconds=2, maximum_seconds=4, retry_after_ceiling_seconds=5)
LEASE = 3
NOW = Now("boot", 0.0, 0.0)
ENDS: tuple[Failure | str | None, ...] = (None, limit(), limit(1), limit(5), failed("timeout"), "cancelled")


def search(slots: int) -> int:
    """Walk through every state that can be reached, and check each step. How many states there are."""
    first = Moment(Pool(name="p", generation=1), (None,) * slots)
    seen = {first}
    waiting = [first]
    while waiting:
        for pool, held, passed in steps(waiting.pop()):
            then = seen_anew(pool, held, passed)
            if then not in seen:
                seen.add(then)
                waiting.append(then)
    return len(seen)


Step = tuple[Pool, tuple[Held | None, ...], int]


def seen_anew(pool: Pool, held: tuple[Held | None, ...], passed: int) -> Moment:
    """The same state ``passed`` seconds on, with time 0, generation 1, and names that stand for the roles."""
    now = Now("boot", float(passed), float(passed))
    lease = pool.lease
    tickets = []
    for each in held:
        if each is None:
            continue
        lease_id = each.ticket.lease_id
        if lease_id is not None:
            lease_id = "probe" if lease and lease.id == lease_id else "fenced"
        ticket = Ticket(
            pool="p",
            generation=int(each.ticket.generation == pool.generation),
            attempt="",
            lease_id=lease_id,
            cooldown=SMALL,
        )
        tickets.append(Held(ticket, each.confirmed, max(0, each.live - passed)))
    tickets.sort(key=repr)
    then = Pool(
        name="p",
        generation=1,
        failure_count=min(pool.failure_count, 3),  # the backoff is at its maximum
        deadline=pool.deadline and after(pool.deadline.remaining(now), NOW),
        lease=lease and Lease("probe", OWNER, after(lease.deadline.remaining(now), NOW)),
    )
    return Moment(then, (*tickets, *[None] * (len(held) - len(tickets))))


def steps(moment: Moment) -> list[Step]:
    pool, held = moment
    never_stuck(pool, NOW)
    cleared, _ = decide(pool, Cleared(), NOW)
    found: list[Step] = [
        (pool, held, 1),
        (cleared, tuple(each and each._replace(live=0) for each in held), 0),
    ]
    for slot, each in enumerate(held):
        if each is None:
            found.append(asked(moment, slot))
        else:
            found.append(confirmed(moment, slot, each))
            found += [settled(moment, slot, each, end) for end in ENDS]
    return found


def never_stuck(pool: Pool, now: Now) -> None:
    later = Now("boot", now.uptime + pool.recovery(now), 0.0)
    assert pool.recovery(now) <= max(SMALL.retry_after_ceiling_seconds, LEASE)
    _, answer = decide(pool, Ask(attempt="any", owner=OWNER, lease_s=LEASE, cooldown=SMALL), later)
    assert isinstance(answer, Ticket), "a stuck pool"


def asked(moment: Moment, slot: int) -> Step:
    pool, held = moment
    then, answer = decide(pool, Ask(attempt="new", owner=OWNER, lease_s=LEASE, cooldown=SMALL), NOW)
    if isinstance(answer, Denied):
        assert answer.recovery > 0
        return then, held, 0
    probe = answer.lease_id is not None
    assert probe == (pool.deadline is not None), "a sick pool admits a probe and nobody else"
    if probe:
        assert not any(each and each.live for each in held), "two live probes"
    entry = Held(answer, confirmed=False, live=LEASE if probe else 0)
    return then, (*held[:slot], entry, *held[slot + 1 :]), 0


def confirmed(moment: Moment, slot: int, each: Held) -> Step:
    pool, held = moment
    then, healed = decide(pool, Confirmed(each.ticket), NOW)
    assert healed == (each.live > 0), "only a live probe confirms"
    if not healed:
        return pool, held, 0
    assert then.deadline is None
    entry = each._replace(confirmed=True, live=0)
    return then, (*held[:slot], entry, *held[slot + 1 :]), 0


def settled(moment: Moment, slot: int, each: Held, end: Failure | str | None) -> Step:
    pool, held = moment
    failure = end if isinstance(end, Failure) else None
    event = Settled(
        ticket=each.ticket, failure=failure, cancelled=end == "cancelled", confirmed=each.confirmed
    )
    then, _ = decide(pool, event, NOW)
    if pool.deadline is not None and then.deadline is None:
        assert each.live, "a late success heals"
        assert end is None, "only a success heals"
    elif pool.deadline is not None and then.deadline is not None:
        assert then.deadline.remaining(NOW) >= pool.deadline.remaining(NOW), "a shortened wait"
    if then.failure_count > pool.failure_count:
        assert then.failure_count == pool.failure_count + 1
        assert then.generation == pool.generation + 1, "a double count"
        assert each.live or (pool.deadline is None and each.ticket.generation == pool.generation)
    if each.live:
        assert then.lease is None, "a lease outlives its probe"
    elif isinstance(end, Failure) and end.category == "capacity":
        ordinary = each.confirmed or each.ticket.lease_id is None
        if ordinary and each.ticket.generation == pool.generation:
            assert then.failure_count == pool.failure_count + 1, "a limit is forgotten"
    assert each.live or then.lease == pool.lease or then.generation > pool.generation, "a foreign lease ends"
    others = tuple(other and (other._replace(live=0) if then.lease is None else other) for other in held)
    return then, (*others[:slot], None, *others[slot + 1 :]), 0


def test_no_state_of_one_pool_and_three_tickets_breaks_a_promise() -> None:
    assert search(slots=3) > 1_000


@pytest.mark.full
def test_no_state_of_one_pool_and_four_tickets_breaks_a_promise() -> None:
    assert search(slots=4) > 2_000
