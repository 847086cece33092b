from __future__ import annotations

from typing import Any

import pytest

from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.run_view import Used, attempts_seen, by_descent, conversations_of, runs_of

GONE, HERE = Owner(1, 1.0, "boot"), Owner(2, 2.0, "boot")


def row(run: str, number: int = 1, *, at: float = 0, **fields: Any) -> AttemptRow:
    given: dict[str, Any] = {"status": "done", "started": at, "ended": at + 1, "conversation": "c", **fields}
    return AttemptRow(run_id=run, number=number, role="reviewer", name=run, owner=HERE, **given)


def seen(*rows: AttemptRow) -> Any:
    return attempts_seen(rows, lambda owner: owner == GONE)


@pytest.mark.parametrize(
    ("owner", "status", "abandoned"),
    [(GONE, "running", True), (HERE, "running", False), (GONE, "done", False)],
)
def test_only_an_open_row_of_a_dead_owner_is_abandoned(owner: Owner, status: Any, abandoned: bool) -> None:
    each = AttemptRow(run_id="r", number=1, conversation="c", role="reviewer", owner=owner, status=status)
    (view,) = seen(each)
    assert view.abandoned is abandoned
    assert (view.id, view.owner, view.status) == (each.id, owner, status)
    (run,) = runs_of([view])
    assert run.abandoned is abandoned


def test_a_run_has_its_attempts_in_order_and_the_status_of_its_newest() -> None:
    rows = seen(
        row("a", 2, at=5),
        row("b", at=3, status="refused"),
        row("a", 1, at=1, status="failed", input_tokens=3, cost_usd=0.5),
    )
    a, b = runs_of(rows)
    assert [attempt.number for attempt in a.attempts] == [1, 2]
    assert (a.run_id, a.status, a.started, a.ended) == ("a", "done", 1, 6)
    assert (b.run_id, b.status) == ("b", "refused")
    assert a.used == Used(input_tokens=3, cost_usd=0.5)


def test_runs_stand_under_the_run_that_asked_for_them() -> None:
    rows = seen(
        row("a", at=1),
        row("b", at=2),
        row("c", at=3, parent_run="a"),
        row("d", at=4, parent_run="c"),
        row("e", at=5, parent_run="gone"),
        row("f", at=6, parent_run="a"),
    )
    order = [(level, run.run_id) for level, run in by_descent(runs_of(rows))]
    assert order == [(0, "a"), (1, "c"), (2, "d"), (1, "f"), (0, "b"), (0, "e")]


def test_what_is_open_has_no_end() -> None:
    (conversation,) = conversations_of(seen(row("a", status="running", ended=None), row("b", at=4)))
    assert conversation.ended is None
    assert [run.ended for run in conversation.runs] == [None, 5]


def test_conversations_come_newest_first_with_their_sums() -> None:
    rows = seen(
        row("a", at=1, conversation="old", output_tokens=1),
        row("b", at=2, conversation="old", status="failed", output_tokens=2),
        row("c", at=3, conversation="new"),
    )
    new, old = conversations_of(rows)
    assert (new.conversation, old.conversation) == ("new", "old")
    assert [run.run_id for run in old.runs] == ["a", "b"]
    assert old.by_status == {"done": 1, "failed": 1}
    assert (old.used, new.used) == (Used(output_tokens=3), Used())
