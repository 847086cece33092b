"""The typed slice of each role, and what is refused as one."""

from __future__ import annotations

import json

import pytest

from custodes.policy.roles import ROLES, Role
from custodes.supervision.evidence import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_TEXT,
    SLICES,
    Backtrack,
    EvidenceError,
    Finding,
    ReviewerEvidence,
    parse,
    schema_for,
)


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_a_slice_that_needs_only_a_summary(role: Role) -> None:
    evidence = parse(role, '{"summary": "done"}')
    assert type(evidence) is SLICES[role]
    assert evidence.summary == "done"


@pytest.mark.parametrize("role", ROLES)
def test_every_slice_has_a_schema_that_names_its_role(role: Role) -> None:
    schema = schema_for(role)
    slice_schema = schema["$defs"][SLICES[role].__name__]
    assert slice_schema["properties"]["role"] == {"enum": [role]}
    assert "summary" in slice_schema["required"]


def test_findings_come_back_typed() -> None:
    answer = {
        "summary": "two",
        "verdict": "request_changes",
        "findings": [{"message": "m", "place": "a.py:3"}],
    }
    evidence = parse("reviewer", answer)
    assert evidence == ReviewerEvidence(
        summary="two", verdict="request_changes", findings=(Finding(message="m", place="a.py:3"),)
    )


def test_one_code_fence_around_the_object_is_taken_off() -> None:
    assert parse("analyst", '```json\n{"summary": "fenced"}\n```\n').summary == "fenced"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "All good!",
        '["summary"]',
        '{"summary": 3}',
        '{"findings": []}',
        "null",
        '{"summary": "a"} trailing',
        '{"summary": "half a pair \\ud800"}',
        '{"summary": "a", "more": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_what_is_not_the_slice_is_refused(answer: str) -> None:
    with pytest.raises(EvidenceError, match="reviewer"):
        parse("reviewer", answer)


def test_another_roles_slice_is_refused() -> None:
    with pytest.raises(EvidenceError):
        parse("reviewer", '{"role": "architect", "summary": "x"}')


def test_an_answer_beyond_the_bound_is_refused_and_not_quoted() -> None:
    with pytest.raises(EvidenceError) as caught:
        parse("reviewer", json.dumps({"summary": "s" * MAX_BYTES}))
    assert len(str(caught.value)) < 200


def test_a_longer_answer_is_shortened_and_says_what_was_left_out() -> None:
    findings = [{"message": "m"}] * (MAX_ENTRIES + 2)
    findings[1] = {"message": "x" * (MAX_TEXT + 9)}
    evidence = parse("reviewer", {"summary": "s", "findings": findings})
    assert isinstance(evidence, ReviewerEvidence)
    assert len(evidence.findings) == MAX_ENTRIES
    assert evidence.findings[1].message == "x" * (MAX_TEXT - 1) + "…"
    assert evidence.cut == (
        f"findings: 2 of {MAX_ENTRIES + 2} entries",
        f"findings[1].message: 10 of {MAX_TEXT + 9} characters",
    )


def test_what_is_ours_to_say_is_neither_asked_for_nor_believed() -> None:
    schema = schema_for("reviewer")["$defs"]
    assert "cut" not in schema["ReviewerEvidence"]["properties"]
    assert set(schema["Artifact"]["properties"]) == {"path", "sha256", "note"}
    evidence = parse(
        "reviewer",
        {"summary": "s", "cut": ["x"], "artifacts": [{"path": "p", "verified": True, "problem": "none"}]},
    )
    assert evidence.cut == ()
    assert (evidence.artifacts[0].verified, evidence.artifacts[0].problem) == (None, "")


@pytest.mark.parametrize("role", ROLES)
def test_every_role_may_tell_of_discoveries_and_of_an_earlier_step_that_is_wrong(role: Role) -> None:
    said = {"step": "find", "reason": "the source is another version's"}
    evidence = parse(role, {"summary": "s", "discoveries": ["a leak"], "backtrack": said})
    assert (evidence.discoveries, evidence.backtrack) == (("a leak",), Backtrack(**said))
    assert parse(role, {"summary": "s", "backtrack": None}).backtrack is None
