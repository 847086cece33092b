"""A child's answer, spoiled: the role's slice within its bounds, or one line that says why it is none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.policy.roles import Role
from custodes.supervision.evidence import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_TEXT,
    SLICES,
    Evidence,
    EvidenceError,
    parse,
)
from support.fuzz import WORDS, bent, in_words, spoiled, tried

ANSWERS: dict[Role, dict[str, Any]] = {
    "reviewer": {
        "summary": "fine",
        "findings": [{"message": "m", "place": "a.py:1", "severity": "low"}],
        "artifacts": [{"path": "a", "sha256": "0" * 64, "verified": True}],
        "verdict": "approve",
        "open_items": ["x"],
        "backtrack": {"step": "a", "reason": "b"},
        "cut": ["forged"],
    },
    "implementer": {"summary": "done", "checks": [{"name": "t", "passed": True}], "files_changed": ["a"]},
    "deployer": {"summary": "up", "deployed": None, "version": "1"},
}
SEEDS = [
    *(json.dumps(answer).encode() for answer in ANSWERS.values()),
    b'```json\n{"summary": "fenced"}\n```',
    b'Here it is:\n```json\n{"summary": "in prose"}\n```\nDone.',
]
FAULTS: list[str | bytes | dict[str, Any]] = [
    "```" + "\n" * 200_000,
    "```json\n" + "```\n" * 50_000,
    '{"summary": "\ud800"}',
    b'{"summary": "\\ud800"}',
    {"summary": "\ud800"},
    {"summary": "s", "open_items": ["\udfff"]},
    '{"summary": "s", "x": ' + "[" * 900 + "]" * 900 + "}",
    '{"summary": "s", "x": ' + "9" * 5_000 + "}",
]


def taken(role: Role, answer: str | bytes | dict[str, Any]) -> Evidence | None:
    try:
        found = parse(role, answer)
    except EvidenceError as error:
        assert len(in_words(error)) < 1_000  # noqa: PT017 - not every answer is refused
        return None
    assert isinstance(found, SLICES[role])
    assert len(found.summary) <= MAX_TEXT
    assert max(len(found.open_items), len(found.artifacts), len(found.cut)) <= MAX_ENTRIES
    assert all(each.verified is None and not each.problem for each in found.artifacts)
    assert "forged" not in found.cut
    encoded = msgspec.json.encode(found)
    assert parse(role, encoded) == msgspec.structs.replace(found, cut=()) or len(encoded) > MAX_BYTES
    return found


@pytest.mark.parametrize("answer", FAULTS, ids=range(len(FAULTS)))
def test_what_once_broke_the_reader_is_evidence_or_refused_in_words(
    answer: str | bytes | dict[str, Any],
) -> None:
    taken("reviewer", answer)


@given(data=st.data())
@tried(60)
def test_a_bent_answer_is_evidence_or_refused_in_words(data: st.DataObject) -> None:
    role = data.draw(st.sampled_from(sorted(ANSWERS)))
    answer = data.draw(bent(ANSWERS[role]))
    taken(role, answer if isinstance(answer, dict) and data.draw(st.booleans()) else json.dumps(answer))


@given(spoiled(SEEDS, [word.encode() for word in WORDS]), st.booleans())
@tried(60)
def test_spoiled_words_are_evidence_or_refused_in_words(data: bytes, as_text: bool) -> None:
    taken("reviewer", data.decode("utf-8", "surrogateescape") if as_text else data)
