"""The rule, case by case."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from custodes.adapters.port import Category, Failure
from custodes.policy.policy import Cooldown
from custodes.supervision.pools.breaker import (
    Ask,
    Cleared,
    Confirmed,
    Denied,
    Pool,
    Settled,
    Ticket,
    backoff,
    decide,
)
from custodes.supervision.record.owner_identity import Owner
from support.health import COOLDOWN, Clock, failed, limit, overload

OWNER = Owner(1, 1.0, "boot-1")
DAY = 86_400


class Breaker:
    """One pool under a clock, for tests."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.pool = Pool(name="one:a")
        self._ids = count(1)

    def ask(
        self, *, lease_s: float = 60, cooldown: Cooldown = COOLDOWN, holder_dead: bool = False
    ) -> Ticket | Denied:
        event = Ask(
            attempt=f"a{next(self._ids)}",
            owner=OWNER,
            lease_s=lease_s,
            cooldown=cooldown,
            holder_dead=holder_dead,
        )
        self.pool, answer = decide(self.pool, event, self.clock())
        return answer

    def ticket(self, **options: float) -> Ticket:
        answer = self.ask(**options)  # type: ignore[arg-type]  # seconds only
        assert isinstance(answer, Ticket)
        return answer

    def probe(self) -> Ticket:
        ticket = self.ticket()
        assert ticket.lease_id is not None
        return ticket

    def wait(self) -> float:
        answer = self.ask()
        assert isinstance(answer, Denied)
        return answer.recovery

    def settle(
        self,
        ticket: Ticket,
        failure: Failure | None = None,
        *,
        cancelled: bool = False,
        confirmed: bool = False,
    ) -> None:
        event = Settled(ticket=ticket, failure=failure, cancelled=cancelled, confirmed=confirmed)
        self.pool, _ = decide(self.pool, event, self.clock())

    def confirm(self, ticket: Ticket) -> bool:
        self.pool, healed = decide(self.pool, Confirmed(ticket), self.clock())
        return healed

    def clear(self) -> None:
        self.pool, _ = decide(self.pool, Cleared(), self.clock())

    def due(self, failure_count: int = 1) -> None:
        """Sick after so many limits in a row, with its deadline passed."""
        self.settle(self.ticket(), limit())
        for _ in range(failure_count - 1):
            self.clock.advance(self.pool.recovery(self.clock()))
            self.settle(self.probe(), limit())
        self.clock.advance(self.pool.recovery(self.clock()))


@pytest.fixture
def breaker() -> Breaker:
    return Breaker()


def test_b1_a_stated_wait_is_lengthened_by_a_longer_one_and_never_shortened(breaker: Breaker) -> None:
    first, second, third = breaker.ticket(), breaker.ticket(), breaker.ticket()
    breaker.settle(first, limit(1))
    breaker.settle(second, limit(60))
    breaker.settle(third, limit(5))
    assert breaker.wait() == 60


def test_b2_a_burst_counts_once(breaker: Breaker) -> None:
    tickets = [breaker.ticket() for _ in range(64)]
    for ticket in tickets:
        breaker.settle(ticket, limit())
    assert breaker.pool.failure_count == 1
    assert breaker.wait() == COOLDOWN.default_seconds


def test_b3_a_late_success_does_not_close_the_breaker(breaker: Breaker) -> None:
    early, other = breaker.ticket(), breaker.ticket()
    breaker.settle(other, limit(3000))
    breaker.settle(early)
    assert breaker.wait() == 3000


def test_b4_after_the_deadline_one_asker_is_the_probe(breaker: Breaker) -> None:
    breaker.due()
    answers = [breaker.ask() for _ in range(200)]
    assert [answer for answer in answers if isinstance(answer, Ticket)] == answers[:1]
    assert isinstance(answers[0], Ticket)
    assert answers[0].lease_id is not None


def test_b5_a_hung_probe_is_fenced_off_once_its_lease_has_ended(breaker: Breaker) -> None:
    breaker.due(failure_count=2)
    hung = breaker.probe()
    breaker.clock.advance(60)
    breaker.settle(hung)
    assert breaker.pool.state(breaker.clock()) == "half_open", (
        "nobody has probed yet; the lease is void all the same"
    )
    second = breaker.probe()
    before = breaker.pool
    for late in (None, limit(), limit(9 * 3600), failed("timeout"), overload()):
        breaker.settle(hung, late)
        assert breaker.confirm(hung) is False
        assert breaker.pool == before
    breaker.settle(second)
    assert breaker.pool.state(breaker.clock()) == "healthy"


@pytest.mark.parametrize("category", ["timeout", "provider", "invalid", "auth", "unavailable"])
def test_b6_a_probe_that_fails_otherwise_frees_its_lease_and_heals_nothing(
    breaker: Breaker, category: Category
) -> None:
    breaker.due()
    breaker.settle(breaker.probe(), failed(category))
    assert isinstance(breaker.ask(), Ticket)
    assert isinstance(breaker.ask(), Denied)


def test_b6_a_cancelled_probe_frees_its_lease_and_heals_nothing(breaker: Breaker) -> None:
    breaker.due()
    breaker.settle(breaker.probe(), cancelled=True)
    assert breaker.pool.state(breaker.clock()) == "half_open"
    assert breaker.probe().lease_id is not None


def test_b6_a_probe_whose_owner_is_proven_dead_frees_its_lease(breaker: Breaker) -> None:
    breaker.due()
    dead = breaker.probe()
    assert isinstance(breaker.ask(), Denied)
    answer = breaker.ask(holder_dead=True)
    assert isinstance(answer, Ticket)
    breaker.settle(dead)
    assert breaker.pool.state(breaker.clock()) == "half_open", "the dead owner's ticket is fenced"


def test_a_dead_holder_never_shortens_a_deadline(breaker: Breaker) -> None:
    breaker.due()
    old = breaker.pool.generation
    breaker.probe()
    breaker.settle(Ticket(pool="one:a", generation=old - 1, attempt="x"), limit(500))
    answer = breaker.ask(holder_dead=True)
    assert isinstance(answer, Denied)
    assert answer.recovery == 500


def test_b7_an_invalid_probe_keeps_the_count_and_leaves_the_pool_due(breaker: Breaker) -> None:
    breaker.due(failure_count=3)
    breaker.settle(breaker.probe(), failed("invalid"))
    assert breaker.pool.failure_count == 3
    assert breaker.probe().lease_id is not None


def test_b8_each_limit_on_a_probe_doubles_the_wait_up_to_the_maximum(breaker: Breaker) -> None:
    breaker.settle(breaker.ticket(), limit())
    waits = [breaker.wait()]
    for _ in range(5):
        breaker.clock.advance(waits[-1])
        breaker.settle(breaker.probe(), limit())
        waits.append(breaker.wait())
    assert waits == [300, 600, 1200, 2400, 3600, 3600]


def test_b8_a_stated_wait_wins_over_our_own_backoff(breaker: Breaker) -> None:
    breaker.due(failure_count=4)
    breaker.settle(breaker.probe(), limit(7))
    assert breaker.wait() == 7


@pytest.mark.parametrize(("stated", "waits"), [(9 * 3600, 9 * 3600), (6 * DAY, 6 * DAY), (30 * DAY, 8 * DAY)])
def test_b9_the_providers_word_wins_over_the_maximum_up_to_its_own_ceiling(
    breaker: Breaker, stated: int, waits: int
) -> None:
    breaker.settle(breaker.ticket(), limit(stated))
    assert breaker.wait() == waits
    breaker.clock.advance(COOLDOWN.maximum_seconds)
    assert breaker.wait() == waits - COOLDOWN.maximum_seconds


@pytest.mark.parametrize("reports", [(limit(9000), limit()), (limit(), limit(9000))])
def test_b10_the_later_of_a_stated_and_a_bare_limit_stays(
    breaker: Breaker, reports: tuple[Failure, Failure]
) -> None:
    for ticket, report in zip([breaker.ticket(), breaker.ticket()], reports, strict=True):
        breaker.settle(ticket, report)
    assert breaker.wait() == 9000


@pytest.mark.parametrize(
    "report",
    [overload(), overload(30), replace(limit(), overloaded=True), replace(limit(600), overloaded=True)],
)
def test_b12_an_overload_is_no_quota_of_ours(breaker: Breaker, report: Failure) -> None:
    for _ in range(10):
        breaker.settle(breaker.ticket(), report)
    assert breaker.pool.failure_count == 0
    assert breaker.pool.state(breaker.clock()) == "healthy"
    assert breaker.pool.marked(breaker.clock())
    breaker.clock.advance(60)
    assert not breaker.pool.marked(breaker.clock()), "a mark never escalates"


def test_b12_an_overloaded_probe_frees_its_lease_and_keeps_the_count(breaker: Breaker) -> None:
    breaker.due(failure_count=2)
    breaker.settle(breaker.probe(), overload())
    assert breaker.pool.failure_count == 2
    assert breaker.probe().lease_id is not None


@pytest.mark.parametrize("step", [-3600, 3600])
def test_b16_a_stepped_clock_moves_neither_a_wait_nor_a_lease(breaker: Breaker, step: int) -> None:
    breaker.clock.step_wall(7200)
    breaker.settle(breaker.ticket(), limit(100))
    breaker.clock.step_wall(step)
    assert breaker.wait() == 100
    breaker.clock.advance(100)
    breaker.probe()
    breaker.clock.step_wall(step)
    breaker.clock.advance(59)
    assert breaker.wait() == 1, "no second probe"


def test_b16_after_a_reboot_at_most_the_granted_length_is_waited(breaker: Breaker) -> None:
    breaker.clock.step_wall(7200)
    breaker.settle(breaker.ticket(), limit(100))
    breaker.clock.step_wall(-7200)
    breaker.clock.reboot(down_s=20)
    assert breaker.wait() == 100
    breaker.clock.step_wall(-3600)
    breaker.clock.advance(40)
    assert breaker.wait() == 60, "wall time was asked once"


def test_b18_while_a_lease_is_held_the_wait_is_what_is_left_of_it(breaker: Breaker) -> None:
    breaker.due()
    breaker.ticket(lease_s=610)
    breaker.clock.advance(10)
    answer = breaker.ask()
    assert answer == Denied(state="half_open", recovery=600)


@pytest.mark.parametrize("category", ["timeout", "provider", "invalid", "auth"])
def test_b21_another_kind_of_failure_changes_no_pool(breaker: Breaker, category: Category) -> None:
    ticket, other = breaker.ticket(), breaker.ticket()
    breaker.settle(ticket, failed(category))
    assert breaker.pool == Pool(name="one:a")
    breaker.settle(breaker.ticket(), limit())
    cooling = breaker.pool
    breaker.settle(other, failed(category))
    assert breaker.pool is cooling


def test_b22_a_callers_own_cancel_says_nothing_of_the_pool(breaker: Breaker) -> None:
    breaker.settle(breaker.ticket(), limit(), cancelled=True)
    assert breaker.pool == Pool(name="one:a")


def test_b25_a_limit_that_is_not_retryable_leaves_the_breaker_closed(breaker: Breaker) -> None:
    breaker.settle(breaker.ticket(), replace(limit(60), retryable=False))
    assert breaker.pool == Pool(name="one:a")


def test_b26_a_successful_probe_heals_and_resets_the_count(breaker: Breaker) -> None:
    breaker.due(failure_count=3)
    breaker.settle(breaker.probe())
    assert breaker.pool.state(breaker.clock()) == "healthy"
    assert breaker.pool.failure_count == 0
    breaker.settle(breaker.ticket(), limit())
    assert breaker.wait() == 300, "the backoff begins anew"


def test_a_probe_heals_over_a_deadline_that_was_learned_while_it_ran(breaker: Breaker) -> None:
    early = breaker.ticket()
    breaker.due()
    probe = breaker.probe()
    breaker.settle(early, limit(5000))
    breaker.settle(probe)
    assert breaker.pool.state(breaker.clock()) == "healthy"


def test_b30_an_old_tickets_stated_limit_opens_a_healed_pool_uncounted(breaker: Breaker) -> None:
    old = breaker.ticket()
    breaker.due()
    breaker.settle(breaker.probe())
    breaker.settle(old, limit(6 * DAY))
    assert breaker.wait() == 6 * DAY
    assert breaker.pool.failure_count == 0


def test_an_old_tickets_bare_limit_is_ignored(breaker: Breaker) -> None:
    old = breaker.ticket()
    breaker.due()
    breaker.settle(breaker.probe())
    healthy = breaker.pool
    breaker.settle(old, limit())
    assert breaker.pool is healthy


def test_b31_an_old_tickets_stated_limit_lets_a_probe_run_on_and_then_holds(breaker: Breaker) -> None:
    old = breaker.ticket()
    breaker.due()
    probe = breaker.probe()
    breaker.settle(old, limit(6 * DAY))
    assert breaker.pool.lease is not None
    assert breaker.wait() == 6 * DAY, "no second probe"
    breaker.settle(probe, failed("provider"))
    assert breaker.wait() == 6 * DAY


def test_b32_after_a_clear_the_probe_is_an_old_ticket(breaker: Breaker) -> None:
    breaker.due()
    probe = breaker.probe()
    breaker.clear()
    cleared = breaker.pool
    assert cleared.state(breaker.clock()) == "healthy"
    for late in (None, limit(), failed("timeout")):
        breaker.settle(probe, late)
        assert breaker.pool is cleared


def test_after_a_clear_what_runs_has_old_tickets(breaker: Breaker) -> None:
    early = breaker.ticket()
    breaker.settle(breaker.ticket(), limit())
    breaker.clear()
    cleared = breaker.pool
    breaker.settle(early, limit())
    assert breaker.pool is cleared
    healthy = breaker.ticket()
    breaker.clear()
    breaker.settle(healthy, limit())
    assert breaker.pool.failure_count == 0, "cleared while healthy, too"


def test_b33_a_probe_is_confirmed_at_its_first_output_and_siblings_run(breaker: Breaker) -> None:
    breaker.due(failure_count=2)
    probe = breaker.probe()
    assert breaker.confirm(probe) is True
    siblings = [breaker.ticket() for _ in range(3)]
    assert all(ticket.lease_id is None for ticket in siblings)
    breaker.settle(probe, limit(), confirmed=True)
    assert breaker.pool.failure_count == 1, "a later limit of that run is an ordinary one"
    assert breaker.wait() == 300


def test_a_confirmed_probe_that_times_out_later_changes_nothing(breaker: Breaker) -> None:
    breaker.due()
    probe = breaker.probe()
    breaker.confirm(probe)
    breaker.clock.advance(4000)
    breaker.settle(probe, failed("timeout"), confirmed=True)
    assert breaker.pool.state(breaker.clock()) == "healthy"


def test_nothing_changed_is_the_very_same_pool(breaker: Breaker) -> None:
    pool = breaker.pool
    breaker.settle(breaker.ticket())
    assert breaker.pool is pool


def test_an_endless_row_of_limits_overflows_nothing() -> None:
    assert backoff(10_000, COOLDOWN) == COOLDOWN.maximum_seconds
