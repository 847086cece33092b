"""The ledger of a fan-out: pure, with the time passed in."""

from __future__ import annotations

from custodes.supervision.budget import Ledger, may_start, take_child
from custodes.supervision.work import Budget


def test_without_limits_everything_is_given() -> None:
    ledger = Ledger(budget=Budget(), opened_at=0)
    for _ in range(3):
        ledger, refusal = take_child(ledger, 1e9)
        assert refusal is None
    assert ledger.children == 3


def test_the_child_past_the_limit_is_refused_and_told_what_was_left() -> None:
    ledger, refusal = take_child(Ledger(budget=Budget(children=1), opened_at=0), 0)
    assert refusal is None
    same, refusal = take_child(ledger, 0)
    assert refusal is not None
    assert "1 children is spent; 0 were left" in refusal.reason
    assert same == ledger


def test_nothing_starts_at_or_after_the_deadline() -> None:
    ledger = Ledger(budget=Budget(wall_seconds=10), opened_at=100)
    assert may_start(ledger, 109.9) is None
    assert may_start(ledger, 110) is not None
    assert take_child(ledger, 110)[1] is not None
