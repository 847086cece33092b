"""The settings file and changes of it: read, or refused in words with every byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters.errors import closest
from custodes.policy import PolicyPatch, Settings, SettingsError, TargetPatch
from custodes.policy.normalize import MOST_WARNINGS, BadValueError, normalize
from support.catalogs import CLAUDE, CODEX, catalog
from support.fuzz import WORDS, bent, in_words, other_kinds_of_nothing, spoiled, tried

CATALOG = catalog(CLAUDE, CODEX)
WHOLE: dict[str, Any] = {
    "other": {"kept": [1, 2.50, "\u00e9"]},
    "cognition": {"enabled": True},
    "model_routing": {
        "enabled": True,
        "mode": "adaptive",
        "complexity_threshold": "COMPLEX",
        "fallback_policy": "fail_closed",
        "max_parallel": 3,
        "cooldown": {"default_seconds": 5, "maximum_seconds": 10},
        "orchestrator": {"model": "claude-sonnet-5", "effort": "low"},
        "roles": {"reviewer": {"model": "claude-haiku-4-5"}},
        "preset": "night",
        "presets": {"night": {"reviewer": {"effort": "low"}}},
        "telemetry": {"relay": True},
        "orchestrator_model": "claude-sonnet-5",
    },
}
CHANGE = PolicyPatch(max_parallel=5, roles={"reviewer": TargetPatch(effort="low")})


def nested(levels: int) -> bytes:
    return json.dumps(WHOLE)[:-1].encode() + b', "deep": ' + b"[" * levels + b"]" * levels + b"}"


FAULTS = [
    b'{"model_routing": {"roles": {"\\ud800": {"model": "x"}}}}',
    b'{"model_routing": {"presets": {"\\ud800": {}}}}',
    b'{"model_routing": {"roles": {"\\u001b[31m": {"model": "x"}}}}',
    *(nested(levels) for levels in (150, 199, 260, 940, 965, 990)),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    found = Settings(tmp_path_factory.mktemp("fuzzed"))
    found.path.parent.mkdir()
    return found


def tells(settings: Settings, content: bytes, change: PolicyPatch = CHANGE) -> None:
    settings.path.write_bytes(content)
    try:
        before = settings.read()
        settings.stale(CATALOG)
        after = settings.patch(change, CATALOG)
    except SettingsError as error:
        in_words(error)
        assert settings.path.read_bytes() == content
        return
    assert after == Settings(settings.path.parents[1]).read()
    if change is CHANGE:
        assert after.policy.max_parallel == 5
        assert (before.policy.mode, before.policy.presets) == (after.policy.mode, after.policy.presets)


@pytest.mark.parametrize("content", FAULTS, ids=range(len(FAULTS)))
def test_what_once_broke_the_settings_is_read_or_refused(settings: Settings, content: bytes) -> None:
    tells(settings, content)


@given(document=bent(WHOLE))
@tried(60)
def test_a_bent_file_is_read_and_changed_or_refused_and_left(settings: Settings, document: Any) -> None:
    tells(settings, json.dumps(document).encode())


@given(content=spoiled([json.dumps(WHOLE, indent=2).encode()], [word.encode() for word in WORDS]))
@tried(60)
def test_a_spoiled_file_is_read_and_changed_or_refused_and_left(settings: Settings, content: bytes) -> None:
    tells(settings, content)


@given(
    name=st.sampled_from([*WORDS[:-1], "\ud800"]) | st.text(max_size=8),
    value=st.sampled_from([*WORDS[:-1], "\udfff", "claude-sonnet-5"]),
    key=st.sampled_from(["roles.", "presets.", "cooldown.", ""]),
)
@tried(15)
def test_whatever_names_a_change_holds_it_is_made_or_refused(
    settings: Settings, name: str, value: str, key: str
) -> None:
    for change in (
        PolicyPatch(presets={name: {"reviewer": TargetPatch(model=value)}}),
        PolicyPatch(preset=name, mode=value),
        PolicyPatch(clear=(key + name,), clear_presets=(name,)),
        PolicyPatch(roles={"reviewer": TargetPatch(adapter=name, model=value)}),
    ):
        tells(settings, json.dumps(WHOLE).encode(), change)


def test_nothing_of_the_wrong_kind_is_refused_and_never_taken_for_not_stated() -> None:
    for path, routing in other_kinds_of_nothing(WHOLE["model_routing"]):
        with pytest.raises(BadValueError):
            pytest.fail(f"{path}: {normalize(routing)}")


def test_thousands_of_names_that_mean_nothing_are_told_of_in_a_few_warnings() -> None:
    target = {"model": "x"}
    many = [f"reviewe{number}" for number in range(5_000)]
    keys: dict[str, Any] = {f"max_paralle{number}": 1 for number in range(5_000)}
    roles = dict.fromkeys(many, target)
    for raw in (keys, {"roles": roles}, {"presets": {"night": roles}}):
        assert len(normalize(raw).warnings) == MOST_WARNINGS
    read = normalize({**keys, "roles": roles, "preset": "gone"})
    assert "'gone'" in read.warnings[0]
    assert "did you mean 'max_parallel'?" in read.warnings[1]


def test_what_is_longer_than_any_name_is_no_misspelled_one() -> None:
    assert closest("reviewr" + "r" * 100_000, ["reviewer" + "r" * 100_000]) is None
    assert closest("reviewr", ["x" * 100_000, "reviewer"]) == "reviewer"
