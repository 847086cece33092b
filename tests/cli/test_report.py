from __future__ import annotations

import json

import msgspec
import pytest

from custodes.adapters.port import Failure, Usage
from custodes.cli.report import PoolTotals, Report, report_of, write_report
from custodes.supervision.evidence import Finding, ReviewerEvidence
from custodes.supervision.work import Attempt, Outcome, Refusal, Status, Waiting


def attempt(
    number: int, pool: str, failure: Failure | None = None, *, probe: bool = False, covers: str | None = None
) -> Attempt:
    return Attempt(
        number=number,
        adapter="a",
        model=None,
        effort=None,
        pool=pool,
        health_state="healthy",
        health_probe=probe,
        failure=failure,
        fallback_reason=covers,
        usage=None if failure else Usage(input_tokens=10, output_tokens=2),
        seconds=1,
    )


def outcome(
    status: Status, *attempts: Attempt, name: str = "look", refusal: Refusal | None = None
) -> Outcome:
    evidence = None
    if status == "done":
        found = Finding(message="unused \x1b]0;title\x07import", place="a.py:1", severity="low")
        evidence = ReviewerEvidence(summary="one finding", findings=(found,), verdict="comment")
    return Outcome(
        run_id=name,
        role="reviewer",
        name=name,
        status=status,
        evidence=evidence,
        attempts=attempts,
        refusal=refusal,
    )


LIMIT = Failure(
    category="capacity", reason="limited", retryable=True, retry_after_s=3, outcome="known_failed"
)


def test_the_totals_count_attempts_fallbacks_limits_probes_and_tokens() -> None:
    report = report_of(
        "plan",
        [
            outcome("done", attempt(1, "p", LIMIT), attempt(2, "q", covers="capacity"), name="one"),
            outcome("done", attempt(1, "p", probe=True), name="two"),
            outcome("done", attempt(1, "q", covers="auth"), name="three"),
        ],
        2.5,
    )
    totals = report.totals
    assert (totals.attempts, totals.fallbacks, totals.limits, totals.probes) == (4, 2, 1, 1)
    assert (totals.input_tokens, totals.output_tokens, totals.cost_usd) == (30, 6, None)
    assert totals.by_status == {"done": 3}
    assert totals.pools == {
        "p": PoolTotals(attempts=2, limits=1, probes=1),
        "q": PoolTotals(attempts=2, limits=0, probes=0),
    }


@pytest.mark.parametrize(
    ("statuses", "cancelled", "status", "code"),
    [
        (["done", "skipped"], False, "done", 0),
        (["done", "failed"], False, "failed", 1),
        (["refused"], False, "failed", 1),
        (["unknown"], False, "failed", 1),
        (["done"], True, "cancelled", 1),
    ],
)
def test_a_run_is_done_only_where_every_child_ended_well(
    statuses: list[Status], cancelled: bool, status: str, code: int
) -> None:
    report = report_of("plan", [outcome(each) for each in statuses], 1, cancelled=cancelled)
    assert (report.status, report.code) == (status, code)


def test_the_text_shows_the_evidence_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    write_report(report_of("plan", [outcome("done", attempt(1, "p:x"))], 1))
    text = capsys.readouterr().out
    assert "one finding" in text
    assert "- a.py:1, unused ]0;titleimport, low" in text
    assert "verdict: comment" in text
    assert "\x1b" not in text
    assert "plan done: 1 done, 1 attempt, 10 tokens in, 2 out, 1.0 s" in text


def test_a_refusal_shows_each_pool_its_wait_and_the_soonest(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = Refusal(
        category="capacity",
        reason="all eligible adapters are at capacity",
        waiting=(
            Waiting(pool="p:x", state="cooling_down", recovery_s=60, reason="limit"),
            Waiting(pool="q", state="half_open", recovery_s=5, reason="probe"),
        ),
        retry_after_s=5,
        passed_over=("c is unavailable: no key",),
    )
    write_report(report_of("plan", [outcome("refused", refusal=refusal)], 1))
    text = capsys.readouterr().out
    assert "p:x is cooling down, 60 s: limit" in text
    assert "q is half open, 5 s: probe" in text
    assert "the soonest recovery is in 5 s" in text
    assert "passed over: c is unavailable: no key" in text


@pytest.mark.parametrize(("covers", "told"), [("invalid", True), ("auth", True), ("capacity", False)])
def test_what_was_asked_for_and_never_tried_is_told_with_where_to_look(
    capsys: pytest.CaptureFixture[str], covers: str, told: bool
) -> None:
    write_report(report_of("plan", [outcome("done", attempt(1, "p", covers=covers))], 1))
    text = capsys.readouterr().out
    assert (f"what was asked for could not run ({covers}): `cos supervision explain" in text) is told


def test_the_json_carries_the_whole_report() -> None:
    report = report_of("plan", [outcome("done", attempt(1, "p"))], 1)
    document = json.loads(msgspec.json.encode(report))
    assert document["outcomes"][0]["evidence"]["findings"][0]["place"] == "a.py:1"
    assert set(document) == set(Report.__struct_fields__)
