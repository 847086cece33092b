from __future__ import annotations

import pytest

from custodes.policy import Decision, Policy, applies, complexity_of
from custodes.policy.trigger import COMPLEXITIES

ADAPTIVE = Policy(enabled=True, mode="adaptive", complexity_threshold="COMPLEX")


@pytest.mark.parametrize(("module", "enabled"), [(False, True), (True, False), (False, False)])
def test_either_gate_shut_is_the_disabled_path(module: bool, enabled: bool) -> None:
    assert applies(Policy(enabled=enabled, mode="suggest"), module, "CHAOTIC") == "off"


def test_explicit_applies_always() -> None:
    assert {applies(Policy(enabled=True), True, word) for word in (None, "CLEAR", "CHAOTIC", "odd")} == {
        "supervised"
    }


def test_suggest_applies_always_and_runs_nothing() -> None:
    assert applies(Policy(enabled=True, mode="suggest"), True, None) == "suggest"


@pytest.mark.parametrize(
    ("complexity", "decision"),
    [
        (None, "below_gate"),
        ("", "below_gate"),
        ("odd", "below_gate"),
        ("CLEAR", "below_gate"),
        ("COMPLICATED", "below_gate"),
        ("COMPLEX", "supervised"),
        ("complex", "supervised"),
        (" Chaotic ", "supervised"),
    ],
)
def test_adaptive_applies_at_or_above_its_threshold(complexity: str | None, decision: Decision) -> None:
    assert applies(ADAPTIVE, True, complexity) == decision


def test_complexities_rank_from_clear_to_chaotic() -> None:
    assert COMPLEXITIES == ("CLEAR", "COMPLICATED", "COMPLEX", "CHAOTIC")
    assert complexity_of("complicated") == "COMPLICATED"
