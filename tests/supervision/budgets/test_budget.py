"""The ledger of a fan-out: pure, with the time passed in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from msgspec.structs import replace

from custodes.supervision.budgets.budget import (
    Amount,
    Ledger,
    Measure,
    Reservation,
    fits,
    may_start,
    observe,
    overdrawn,
    refund,
    reserve,
    settle,
    spending,
    take_child,
)
from custodes.supervision.work import Budget, Shortfall


def ledger_of(**limits: float) -> Ledger:
    return Ledger(budget=Budget(**limits), opened_at=0)  # type: ignore[arg-type]


def granted(ledger: Ledger, **need: float) -> tuple[Ledger, Reservation]:
    ledger, answer = reserve(ledger, Measure(**need))  # type: ignore[arg-type]
    assert isinstance(answer, Reservation)
    return ledger, answer


def spent(ledger: Ledger, **used: float) -> Ledger:
    return settle(ledger, Reservation(), Measure(**used))  # type: ignore[arg-type]


def test_without_limits_everything_is_given() -> None:
    ledger = ledger_of()
    for _ in range(3):
        ledger, refusal = take_child(ledger, 1e9)
        assert refusal is None
    assert ledger.children == 3
    assert fits(ledger, Measure(tokens=10**12, usd=1e9)) is None
    ledger, reservation = granted(ledger, tokens=10**12, usd=1e9)
    assert reservation == Reservation(), "nothing is set aside of what has no limit"


def test_the_child_past_the_limit_is_refused_and_told_what_was_left() -> None:
    ledger, refusal = take_child(ledger_of(children=1), 0)
    assert refusal is None
    same, refusal = take_child(ledger, 0)
    assert refusal == Shortfall(limit="children", allowed=1, spent=1, left=0, needed=1)
    assert "1 child is spent; 0 were left" in str(refusal)
    assert same == ledger


def test_a_child_below_the_deepest_level_is_refused() -> None:
    ledger, refusal = take_child(ledger_of(depth=2), 0, depth=2)
    assert refusal is None
    same, refusal = take_child(ledger, 0, depth=3)
    assert refusal is not None
    assert (refusal.limit, refusal.needed) == ("depth", 3)
    assert "2 levels of children" in str(refusal)
    assert same == ledger


def test_nothing_starts_at_or_after_the_deadline() -> None:
    ledger = Ledger(budget=Budget(wall_seconds=10), opened_at=100)
    assert may_start(ledger, 109.9) is None
    assert may_start(ledger, 110) is not None
    assert take_child(ledger, 110)[1] is not None


def test_of_10_with_9_9_spent_no_child_of_1_is_admitted_and_the_refusal_says_what_was_left() -> None:
    ledger = spent(ledger_of(usd=10), usd=9.9)
    for _ in range(5):
        same, refusal = reserve(ledger, Measure(usd=1, usd_from="the caller's estimate"))
        assert refusal == Shortfall(
            limit="usd",
            allowed=10,
            spent=9.9,
            left=0.1,
            needed=1,
            source="the caller's estimate",
        )
        assert str(refusal) == (
            "the fan-out's budget of 10 USD leaves 0.1 USD (9.9 USD spent, 0 USD reserved); "
            "one more attempt needs 1 USD (the caller's estimate)"
        )
        assert same == ledger


def test_what_fits_exactly_is_admitted_however_the_floats_fall() -> None:
    ledger = ledger_of(usd=1)
    for _ in range(10):
        ledger, _ = granted(ledger, usd=0.1)
    assert isinstance(reserve(ledger, Measure(usd=0.1))[1], Shortfall)


def test_the_early_end_of_a_child_gives_back_what_it_did_not_use() -> None:
    ledger, first = granted(ledger_of(usd=1, tokens=100), usd=1, tokens=60)
    assert fits(ledger, Measure(usd=0.5)) is not None
    ledger = settle(ledger, first, Measure(usd=0.25, tokens=10))
    assert fits(ledger, Measure(usd=0.75, tokens=90)) is None
    assert ledger.reserved == Amount()


def test_what_never_started_is_refunded_whole() -> None:
    before = ledger_of(tokens=100)
    ledger, reservation = granted(before, tokens=100)
    assert refund(ledger, reservation) == before


def test_unknown_usage_settles_at_its_reservation_and_counts_as_estimated() -> None:
    ledger, reservation = granted(ledger_of(tokens=100, usd=1), tokens=40, usd=0.5)
    ledger = settle(ledger, reservation, Measure(usd=0.25))
    assert ledger.spent == Amount(tokens=40, usd=250_000_000)
    assert ledger.estimated == Amount(tokens=40)


def test_what_was_seen_used_is_spent_and_not_reserved_twice() -> None:
    ledger, reservation = granted(ledger_of(tokens=100), tokens=40)
    ledger, reservation = observe(ledger, reservation, Measure(tokens=30))
    assert (ledger.spent.tokens, ledger.reserved.tokens) == (30, 10)
    assert overdrawn(ledger) is None
    ledger = settle(ledger, reservation, Measure(tokens=35))
    assert (ledger.spent.tokens, ledger.reserved.tokens) == (35, 0)


def test_an_attempt_overdraws_once_it_takes_what_is_set_aside_for_others() -> None:
    ledger, first = granted(ledger_of(tokens=100), tokens=40)
    ledger, _ = granted(ledger, tokens=50)
    ledger, first = observe(ledger, first, Measure(tokens=50))
    assert overdrawn(ledger) is None
    ledger, first = observe(ledger, first, Measure(tokens=51))
    short = overdrawn(ledger)
    assert short is not None
    assert (short.limit, short.left) == ("tokens", 0)


def test_an_overrun_is_recorded_and_stops_new_starts() -> None:
    ledger, reservation = granted(ledger_of(tokens=100), tokens=40)
    ledger = settle(ledger, reservation, Measure(tokens=130))
    total = spending(ledger, 1).tokens
    assert (total.spent, total.left, total.overrun) == (130, 0, 30)
    refusal = fits(ledger, Measure())
    assert refusal is not None
    assert "is spent (130 tokens spent, 0 tokens reserved)" in str(refusal)


@pytest.mark.parametrize("limit", [{"usd": float("nan")}, {"tokens": -1}, {"wall_seconds": float("inf")}])
def test_a_limit_that_is_none_is_refused_where_the_budget_is_made(limit: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"budget\.\w+: .* is no number of 0 or more"):
        Budget(**limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("field", [{"children": "3"}, {"tokens": 1.5}, {"when_spent": "wait"}])
def test_a_field_of_the_wrong_type_is_refused_where_the_budget_is_made(field: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"budget\.{next(iter(field))}: "):
        Budget(**field)


amounts = st.builds(
    Measure,
    tokens=st.none() | st.integers(0, 60),
    usd=st.none() | st.integers(0, 60).map(lambda cents: cents / 100),
)


class Spenders(RuleBasedStateMachine):
    """Any order of reserve, observe, settle and refund, against a model that adds up what each one took."""

    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = ledger_of(tokens=100, usd=1)
        self.open: dict[int, Reservation] = {}
        self.beyond = Amount()
        """How far attempts went past what each was granted: all that the budget can be overrun by."""
        self.closed = Amount()

    @rule(target=held, need=amounts)
    def start(self, need: Measure) -> int:
        before = self.ledger
        self.ledger, answer = reserve(before, need)
        number = len(self.open) + 1000 * self.ledger.children
        self.ledger = replace(self.ledger, children=self.ledger.children + 1)
        if isinstance(answer, Shortfall):
            assert self.ledger.reserved == before.reserved
        else:
            taken = self.ledger.reserved + self.ledger.spent
            assert taken.tokens <= 100, "over-reserved"
            assert taken.usd <= 1_000_000_000, "over-reserved"
            self.open[number] = answer
        return number

    @rule(number=held, used=amounts)
    def use(self, number: int, used: Measure) -> None:
        if number in self.open:
            self.ledger, self.open[number] = observe(self.ledger, self.open[number], used)

    @rule(number=consumes(held), used=amounts)
    def end(self, number: int, used: Measure) -> None:
        if (reservation := self.open.pop(number, None)) is None:
            return
        before = self.ledger.spent
        self.ledger = settle(self.ledger, reservation, used)
        final = reservation.used + (self.ledger.spent - before)
        self.closed += final
        self.beyond += (final - reservation.granted).at_least(Amount())

    @rule(number=consumes(held))
    def withdraw(self, number: int) -> None:
        if (reservation := self.open.pop(number, None)) is not None:
            self.ledger = refund(self.ledger, reservation)
            self.closed += reservation.used
            self.beyond += (reservation.used - reservation.granted).at_least(Amount())

    @precondition(lambda self: not self.open)
    @rule()
    def idle(self) -> None:
        assert self.ledger.reserved == Amount()

    @invariant()
    def adds_up(self) -> None:
        held, used, beyond = Amount(), self.closed, self.beyond
        for reservation in self.open.values():
            held += reservation.held
            used += reservation.used
            beyond += (reservation.used - reservation.granted).at_least(Amount())
        assert self.ledger.reserved == held
        assert self.ledger.spent == used
        taken = held + used
        assert taken.tokens <= 100 + beyond.tokens
        assert taken.usd <= 1_000_000_000 + beyond.usd


TestSpenders = Spenders.TestCase


@given(
    limit=st.integers(0, 50),
    needs=st.lists(st.integers(0, 60), max_size=12),
)
def test_those_asked_for_first_get_what_there_is(limit: int, needs: list[int]) -> None:
    ledger, left = ledger_of(tokens=limit), limit
    for need in needs:
        ledger, answer = reserve(ledger, Measure(tokens=need))
        admitted = isinstance(answer, Reservation)
        assert admitted == (need <= left and left > 0)
        left -= need if admitted else 0


def test_a_sum_beyond_all_reckoning_is_a_limit_and_a_need_like_any_other() -> None:
    ledger = ledger_of(usd=1e300)
    assert fits(ledger, Measure(usd=10)) is None
    assert fits(ledger_of(usd=10), Measure(usd=1e300)) is not None
