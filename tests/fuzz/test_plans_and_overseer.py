"""Plans and ``supervisor.yaml`` with values that nobody meant: read, or refused in one line of words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from custodes.overseer.config import Config
from custodes.overseer.reading import ConfigError, parse_config, read_config
from custodes.supervision.plans.plan import Plan, PlanError, load_plan
from support.fuzz import WORDS, bent, in_words, other_kinds_of_nothing, spoiled, tried

PLAN: dict[str, Any] = {
    "name": "review",
    "steps": [
        {"id": "look", "role": "reviewer", "prompt": "Look.", "timeout": 5, "estimate_tokens": 10},
        {"id": "make", "role": "implementer", "prompt": "Make.", "needs": ["look"], "scope": ["src"]},
    ],
    "max_parallel": 2,
    "max_backtracks": 1,
    "budget": {"tokens": 100, "usd": 1.5, "wall_seconds": 60},
}
OVERSEEN: dict[str, Any] = {
    "supervisor": {
        "check_interval": 300,
        "notify": {"telegram": True, "log": True, "channels": {"mine": {"url_env": "MINE"}}},
        "recovery": {"checks": 3, "spacing": 60},
        "command": {"read": ["cat", "{profile}"], "switch": ["set", "{model}"]},
        "providers": {
            "one": {
                "health_url": "http://localhost:1/v1/models",
                "quota_reset": "daily",
                "expect": [200],
                "usage": {"url": "http://localhost:1/usage", "remaining": "a.b"},
                "switch": {"model": "{model}", "provider": "x", "base_url": "http://localhost:1/v1"},
            },
        },
        "fallback_matrix": {"worker": {"primary": "one/m", "fallbacks": ["one/n"], "last_resort": "one"}},
    }
}


def plan_of(file: Path, data: bytes) -> Plan | None:
    file.write_bytes(data)
    try:
        plan = load_plan(file)
    except PlanError as error:
        in_words(error)
        return None
    unfolded = plan.unfolded()
    assert {need for step in unfolded.steps for need in step.needs} <= {step.id for step in plan.steps}
    assert plan.digest
    return plan


def config_of(raw: Any) -> Config | None:
    if not isinstance(raw, dict):
        return None
    try:
        found = parse_config(raw, "supervisor.yaml")
    except ConfigError as error:
        in_words(error)
        return None
    for name, profile in found.fallback_matrix.items():
        for choice in profile.choices:
            found.setting(name, choice)
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed") / "file.yaml"


def test_what_is_bent_here_can_be_read_as_it_is(file: Path) -> None:
    assert plan_of(file, json.dumps(PLAN).encode())
    assert config_of(OVERSEEN)


@given(document=bent(PLAN))
@tried(30)
def test_a_bent_plan_is_read_or_refused_in_a_line(file: Path, document: Any) -> None:
    plan_of(file, json.dumps(document).encode())


@given(data=spoiled([json.dumps(PLAN, indent=1).encode()], [word.encode() for word in WORDS]))
@tried(40)
def test_a_spoiled_plan_is_read_or_refused_in_a_line(file: Path, data: bytes) -> None:
    plan_of(file, data)


@given(document=bent(OVERSEEN))
@tried(150)
def test_a_bent_supervisor_yaml_is_read_or_refused_in_a_line(document: Any) -> None:
    config_of(document)


@given(data=spoiled([json.dumps(OVERSEEN, indent=1).encode()], [word.encode() for word in WORDS]))
@tried(40)
def test_a_spoiled_supervisor_yaml_is_read_or_refused_in_a_line(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        read_config(file)
    except ConfigError as error:
        in_words(error)


@pytest.mark.parametrize("whole", [PLAN, OVERSEEN], ids=["a plan", "supervisor.yaml"])
def test_nothing_of_the_wrong_kind_is_refused_and_never_taken_for_not_stated(file: Path, whole: Any) -> None:
    for path, document in other_kinds_of_nothing(whole):
        found = config_of(document) if whole is OVERSEEN else plan_of(file, json.dumps(document).encode())
        assert found is None, path
