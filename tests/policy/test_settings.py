from __future__ import annotations

import fcntl
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from custodes.policy import (
    Catalog,
    CooldownPatch,
    OldVersionError,
    Policy,
    PolicyPatch,
    PolicyRefusedError,
    RouteRequest,
    Settings,
    SettingsError,
    Target,
    TargetPatch,
    TelemetryPatch,
    resolve,
    turn_defaults,
)
from custodes.policy import settings as settings_module
from support.catalogs import CLAUDE, CODEX, PLAIN, catalog

BOTH = catalog(CLAUDE, CODEX)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path)


def write(settings: Settings, content: str | bytes) -> None:
    settings.path.parent.mkdir(exist_ok=True)
    settings.path.write_bytes(content.encode() if isinstance(content, str) else content)


def role(name: str, **fields: str) -> PolicyPatch:
    return PolicyPatch(roles={name: TargetPatch(**fields)})


def orchestrator(**fields: str) -> PolicyPatch:
    return PolicyPatch(orchestrator=TargetPatch(**fields))


def test_a_missing_file_reads_as_the_defaults_which_is_disabled(settings: Settings) -> None:
    found = settings.read()
    assert found.policy == Policy()
    assert not found.policy.enabled
    assert found.module_enabled
    assert not settings.path.parent.exists()


def test_the_playbook_sections_2_to_6_stand_as_typed(settings: Settings) -> None:
    for change in (
        PolicyPatch(enabled=True),
        orchestrator(model="claude-sonnet-5", effort="medium"),
        role("reviewer", model="claude-haiku-4-5", effort="low"),
        role("architect", model="claude-opus-4-8", effort="xhigh"),
        role("researcher", model="claude-fable-5"),
        PolicyPatch(clear_roles=("reviewer",)),
        PolicyPatch(mode="adaptive", complexity_threshold="COMPLICATED"),
        PolicyPatch(fallback_policy="fail_closed"),
        role("implementer", adapter="codex"),
    ):
        settings.patch(change, BOTH)
    policy = settings.read().policy
    assert policy == Policy(
        enabled=True,
        mode="adaptive",
        orchestrator=Target(model="claude-sonnet-5", effort="medium"),
        roles={
            "architect": Target(model="claude-opus-4-8", effort="xhigh"),
            "researcher": Target(model="claude-fable-5"),
            "implementer": Target(adapter="codex"),
        },
    )
    (route,) = resolve(RouteRequest(role="implementer"), policy, BOTH).candidates
    assert (route.adapter, route.model, route.provenance["model"]) == ("codex", None, "adapter_default")
    (route,) = resolve(RouteRequest(role="researcher"), policy, BOTH).candidates
    assert (route.model, route.effort) == ("claude-fable-5", "medium")


def test_the_headless_examples_stand_as_typed(settings: Settings) -> None:
    for change in (
        PolicyPatch(enabled=True),
        PolicyPatch(
            mode="adaptive",
            complexity_threshold="COMPLICATED",
            fallback_policy="next_eligible",
            max_parallel=3,
        ),
        orchestrator(model="claude-sonnet-5", effort="medium"),
        role("reviewer", model="claude-haiku-4-5", effort="low"),
        role("architect", model="claude-opus-4-8", effort="xhigh"),
        PolicyPatch(enabled=False),
    ):
        settings.patch(change, BOTH)
    policy = settings.read().policy
    assert not policy.enabled
    assert policy.fallback_policy == "next_eligible"
    assert set(policy.roles) == {"reviewer", "architect"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (role("reviewer", adapter="gemini"), ["no eligible dispatch adapter for 'gemini'"]),
        (role("reviewer", adapter="cluade"), ["no eligible dispatch adapter for 'cluade'", "'claude'"]),
        (
            role("reviewer", model="claude-haiku-4-6"),
            ["model 'claude-haiku-4-6' is not declared by adapter 'claude'"],
        ),
        (role("reviwer", model="claude-haiku-4-5"), ["'reviwer'", "did you mean 'reviewer'?"]),
        (
            role("reviewer", adapter="plain", effort="low"),
            ["adapter 'plain' does not support effort selection"],
        ),
        (role("reviewer", adapter="plain", model="x"), ["adapter 'plain' does not support model selection"]),
        (
            role("reviewer", adapter="claude", effort="turbo"),
            ["effort 'turbo' is not listed by adapter 'claude'", "xhigh"],
        ),
        (
            role("reviewer", model="claude-haiku-4-5", effort="minimal"),
            ["no single adapter has both model 'claude-haiku-4-5' and effort 'minimal'"],
        ),
        (
            orchestrator(adapter="claude", model="gpt-9"),
            ["orchestrator", "model 'gpt-9' is not declared by adapter 'claude'"],
        ),
        (PolicyPatch(max_parallel=17), ["max_parallel", "17", "1 to 16"]),
        (PolicyPatch(max_parallel=0), ["max_parallel", "1 to 16"]),
        (PolicyPatch(max_live=0), ["max_live", "1 to 256"]),
        (PolicyPatch(ask_seconds=-1), ["ask_seconds", "0 to 86400"]),
        (PolicyPatch(mode="adaptiv"), ["mode", "did you mean adaptive?"]),
        (PolicyPatch(fallback_policy="next"), ["fallback_policy", "next_eligible"]),
        (PolicyPatch(cooldown=CooldownPatch(default_seconds=0)), ["cooldown.default_seconds"]),
        (
            PolicyPatch(cooldown=CooldownPatch(default_seconds=7200)),
            ["default_seconds 7200 is over maximum_seconds 3600"],
        ),
        (PolicyPatch(preset="night"), ["unknown preset 'night'"]),
        (PolicyPatch(clear=("modes",)), ["'modes' is no key of the policy", "did you mean 'mode'?"]),
        (PolicyPatch(clear_roles=("reviwer",)), ["did you mean 'reviewer'?"]),
        (role("reviewer", model=" \n"), ["roles.reviewer.model"]),
        (role("reviewer", model="bad\udcff"), ["roles.reviewer.model", "a name on one line"]),
        (
            PolicyPatch(presets={"n": {"reviewer": TargetPatch(adapter="claude", model="x")}}),
            ["preset n", "model 'x'"],
        ),
    ],
)
def test_what_could_never_be_dispatched_is_refused_with_the_reason(
    settings: Settings, change: PolicyPatch, words: list[str]
) -> None:
    write(settings, '{"model_routing": {"enabled": true}}')
    before = settings.path.read_bytes()
    with pytest.raises(PolicyRefusedError) as refused:
        settings.patch(change, catalog(CLAUDE, CODEX, PLAIN))
    for word in words:
        assert word in str(refused.value)
    assert settings.path.read_bytes() == before


def test_an_orchestrators_effort_and_a_role_on_an_adapter_without_efforts_are_refused_naming_both(
    settings: Settings,
) -> None:
    view = catalog(CLAUDE, PLAIN)
    settings.patch(orchestrator(effort="high"), view)
    with pytest.raises(PolicyRefusedError) as refused:
        settings.patch(role("reviewer", adapter="plain"), view)
    assert "role reviewer" in str(refused.value)
    assert "adapter 'plain' does not support effort selection" in str(refused.value)
    assert "the orchestrator's effort 'high'" in str(refused.value)


def test_the_same_conflict_is_refused_in_the_other_order(settings: Settings) -> None:
    view = catalog(CLAUDE, PLAIN)
    settings.patch(role("reviewer", adapter="plain"), view)
    with pytest.raises(PolicyRefusedError, match="the orchestrator's effort 'high'"):
        settings.patch(orchestrator(effort="high"), view)


def test_a_refusal_names_the_keys_that_make_it_so(settings: Settings) -> None:
    with pytest.raises(PolicyRefusedError) as refused:
        settings.patch(role("reviewer", adapter="claude", model="no-such"), BOTH)
    assert refused.value.keys == (("roles.reviewer.adapter", "roles.reviewer.model"),)
    with pytest.raises(PolicyRefusedError) as refused:
        settings.patch(PolicyPatch(max_parallel=17), BOTH)
    assert refused.value.keys == (("max_parallel",),)


def test_a_change_decided_on_an_older_version_is_refused_with_the_current_one(settings: Settings) -> None:
    seen = settings.read().digest
    other = settings.patch(PolicyPatch(mode="suggest"), BOTH)
    with pytest.raises(OldVersionError) as refused:
        settings.patch(PolicyPatch(mode="adaptive"), BOTH, based_on=seen)
    assert refused.value.current == other == settings.read()
    assert settings.patch(PolicyPatch(mode="adaptive"), BOTH, based_on=other.digest).policy.mode == "adaptive"


def test_an_empty_catalog_accepts_any_model_string(settings: Settings) -> None:
    found = settings.patch(role("implementer", adapter="codex", model="gpt-next (preview)"), BOTH)
    assert found.policy.roles["implementer"].model == "gpt-next (preview)"


def test_a_stale_entry_does_not_block_other_edits_and_is_shown_with_the_reason(settings: Settings) -> None:
    settings.patch(role("implementer", adapter="codex"), BOTH)
    only_claude = catalog(CLAUDE, ineligible={"codex": "it is not in .coding-os.yaml::agents"})
    settings.patch(role("reviewer", model="claude-haiku-4-5"), only_claude)
    settings.patch(role("implementer", effort="low"), only_claude)
    settings.patch(orchestrator(effort="medium"), only_claude)
    settings.patch(PolicyPatch(enabled=True), Catalog())
    assert settings.read().policy.roles["implementer"] == Target(adapter="codex", effort="low")
    (problem,) = settings.stale(only_claude)
    assert "no eligible dispatch adapter for 'codex'" in str(problem)
    assert "role implementer" in str(problem)
    with pytest.raises(PolicyRefusedError, match="no eligible dispatch adapter for 'codex'"):
        settings.patch(role("implementer", adapter="codex"), only_claude)
    settings.patch(PolicyPatch(clear_roles=("implementer",)), only_claude)
    assert settings.stale(only_claude) == ()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "empty"),
        ('{"model_routing": {"enabled": tr', "line 1, column 31"),
        ("[]", "no JSON object"),
        ('{"model_routing": {"mode": "expicit"}}', "did you mean explicit?"),
        ('{"model_routing": {"max_parallel": 99}}', "1 to 16"),
        ('{"model_routing": {"max_parallel": true}}', "1 to 16"),
        ('{"model_routing": {"enabled": "yes"}}', "true or false"),
        ('{"model_routing": []}', "model_routing is an array"),
        ('{"model_routing": {"roles": {"reviewer": "claude"}}}', "roles.reviewer"),
        ('{"cognition": {"enabled": 1}}', "cognition.enabled"),
        ("\ufeff{}", "byte order mark"),
        ('{"model_routing": {"enabled": true,}}', "line 1"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": NaN}', "NaN"),
        (b'{"a": "\xff"}', "UTF-8"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_file_or_a_bad_value_is_reported_and_never_written_over(
    settings: Settings, content: str | bytes, word: str
) -> None:
    write(settings, content)
    before = settings.path.read_bytes()
    with pytest.raises(SettingsError) as seen:
        settings.read()
    assert word in str(seen.value).replace(": is", " is")
    assert str(settings.path) in str(seen.value)
    with pytest.raises(SettingsError):
        settings.patch(PolicyPatch(enabled=True, mode="explicit", max_parallel=2), BOTH)
    assert settings.path.read_bytes() == before


def test_what_is_no_plain_file_is_reported_and_never_read_without_end(settings: Settings) -> None:
    settings.path.parent.mkdir(exist_ok=True)
    os.mkfifo(settings.path)
    for target in (None, "/dev/zero", "."):
        if target is not None:
            settings.path.unlink()
            settings.path.symlink_to(target)
        with pytest.raises(SettingsError, match=r"no plain file|Is a directory"):
            settings.read()
        with pytest.raises(SettingsError, match=r"no plain file|Is a directory"):
            settings.patch(PolicyPatch(enabled=True), catalog())
    settings.path.unlink()
    settings.path.write_text("{}" + " " * (4 << 20))
    with pytest.raises(SettingsError, match="larger than"):
        settings.read()


def test_a_repaired_file_is_read_again(settings: Settings) -> None:
    write(settings, "{")
    with pytest.raises(SettingsError):
        settings.read()
    write(settings, '{"model_routing": {"enabled": true}}')
    assert settings.read().policy.enabled


def test_a_file_rewritten_in_place_to_the_same_size_is_seen_at_once(settings: Settings) -> None:
    for mode in ("explicit", "adaptive") * 20:
        write(settings, json.dumps({"model_routing": {"mode": mode}}))
        assert settings.read().policy.mode == mode


def test_both_gates_are_read(settings: Settings) -> None:
    write(settings, '{"cognition": {"enabled": false}, "model_routing": {"enabled": true}}')
    found = settings.read()
    assert (found.module_enabled, found.policy.enabled) == (False, True)
    assert turn_defaults(found.policy, found.module_enabled) == Target()


def test_the_digest_follows_the_policy_and_not_the_way_it_is_written(settings: Settings) -> None:
    write(settings, '{"model_routing": {"enabled": true, "max_parallel": 4}}')
    first = settings.read().digest
    write(settings, '{"x": 1,\n "model_routing": {"max_parallel": 4, "mode": "explicit",  "enabled": true}}')
    assert settings.read().digest == first
    settings.patch(PolicyPatch(max_parallel=5), BOTH)
    assert settings.read().digest != first


FOREIGN = (
    '{\r\n\t"theme":"dark","list": [1,2,   3],\r\n\t"model_routing": {\r\n\t\t"future": {"a":1.50e3},\r\n'
    '\t\t"roles": {"reviewer": { "effort": "low", "note": "caf\\u00e9" }},\r\n'
    '\t\t"enabled": false\r\n\t},\r\n'
    '\t"last": "\u00fc"   }\r\n\r\n'
)


def test_what_a_change_does_not_name_keeps_its_bytes(settings: Settings) -> None:
    write(settings, FOREIGN)
    settings.patch(
        PolicyPatch(enabled=True, max_parallel=4, roles={"reviewer": TargetPatch(model="claude-haiku-4-5")}),
        BOTH,
    )
    expected = (
        FOREIGN.replace('"enabled": false', '"enabled": true,\r\n\t\t"max_parallel":4')
        # The document's first key decides how a colon is written, its neighbour how a member is set off.
        .replace('"caf\\u00e9" }', '"caf\\u00e9", "model":"claude-haiku-4-5" }')
    )
    assert settings.path.read_bytes().decode() == expected


def test_a_change_and_its_opposite_leave_the_file_as_it_was(settings: Settings) -> None:
    write(settings, FOREIGN)
    settings.patch(PolicyPatch(enabled=True), BOTH)
    settings.patch(PolicyPatch(enabled=False), BOTH)
    assert settings.path.read_bytes() == FOREIGN.encode()


def test_a_change_that_comes_to_nothing_writes_nothing(settings: Settings) -> None:
    write(settings, '{"model_routing": {"mode": "suggest"}}')
    before = settings.path.stat()
    settings.patch(PolicyPatch(mode="suggest", orchestrator=TargetPatch(model="")), BOTH)
    assert settings.path.stat() == before


def test_the_legacy_orchestrator_model_is_understood_and_kept_in_step(settings: Settings) -> None:
    write(settings, '{"model_routing": {"orchestrator_model": "claude-haiku-4-5"}}')
    assert settings.read().policy.orchestrator == Target(model="claude-haiku-4-5")
    settings.patch(orchestrator(model="claude-sonnet-5"), BOTH)
    raw = json.loads(settings.path.read_text())["model_routing"]
    assert raw == {"orchestrator_model": "claude-sonnet-5", "orchestrator": {"model": "claude-sonnet-5"}}
    settings.patch(PolicyPatch(clear_orchestrator=True), BOTH)
    raw = json.loads(settings.path.read_text())["model_routing"]
    assert raw["orchestrator_model"] == ""
    assert settings.read().policy.orchestrator == Target()


@pytest.mark.parametrize("clear", [orchestrator(model=""), PolicyPatch(clear=("orchestrator.model",))])
def test_a_model_that_stands_only_in_its_legacy_place_can_be_cleared(
    settings: Settings, clear: PolicyPatch
) -> None:
    write(settings, '{"model_routing": {"orchestrator_model": "claude-haiku-4-5"}}')
    assert settings.patch(clear, BOTH).policy.orchestrator == Target()


def test_one_field_can_be_cleared_and_the_others_stay(settings: Settings) -> None:
    settings.patch(role("reviewer", model="claude-haiku-4-5", effort="low"), BOTH)
    assert settings.patch(role("reviewer", effort=""), BOTH).policy.roles == {
        "reviewer": Target(model="claude-haiku-4-5")
    }
    assert settings.patch(role("reviewer", model=""), BOTH).policy.roles == {}


def test_an_entry_can_be_cleared_and_written_in_one_change(settings: Settings) -> None:
    settings.patch(role("reviewer", model="claude-haiku-4-5", effort="low"), BOTH)
    change = PolicyPatch(clear_roles=("reviewer",), roles={"reviewer": TargetPatch(model="claude-fable-5")})
    assert settings.patch(change, BOTH).policy.roles == {"reviewer": Target(model="claude-fable-5")}


EVERY_KEY: dict[str, tuple[PolicyPatch, str]] = {
    "enabled": (PolicyPatch(enabled=True), "enabled"),
    "mode": (PolicyPatch(mode="suggest"), "mode"),
    "complexity_threshold": (PolicyPatch(complexity_threshold="chaotic"), "complexity_threshold"),
    "fallback_policy": (PolicyPatch(fallback_policy="next_eligible"), "fallback_policy"),
    "max_parallel": (PolicyPatch(max_parallel=16), "max_parallel"),
    "max_live": (PolicyPatch(max_live=256), "max_live"),
    "ask_seconds": (PolicyPatch(ask_seconds=0), "ask_seconds"),
    "cooldown": (
        PolicyPatch(
            cooldown=CooldownPatch(default_seconds=1, maximum_seconds=2, retry_after_ceiling_seconds=3)
        ),
        "cooldown",
    ),
    "orchestrator": (orchestrator(adapter="claude", model="claude-fable-5", effort="max"), "orchestrator"),
    "roles": (role("reviewer", adapter="codex", model="any", effort="low"), "roles.reviewer"),
    "preset": (
        PolicyPatch(preset="n", presets={"n": {"reviewer": TargetPatch(effort="low")}}, clear=("presets",)),
        "preset",
    ),
    "presets": (PolicyPatch(presets={"n": {"reviewer": TargetPatch(effort="low")}}), "presets.n"),
    "telemetry": (
        PolicyPatch(telemetry=TelemetryPatch(relay=False, prompts=True, outputs=True, tool_arguments=True)),
        "telemetry",
    ),
}


def test_every_key_of_the_policy_is_known_to_the_test_below() -> None:
    assert set(EVERY_KEY) == set(Policy.__struct_fields__)


@pytest.mark.parametrize("key", EVERY_KEY)
def test_every_key_can_be_set_and_cleared(settings: Settings, key: str) -> None:
    change, name = EVERY_KEY[key]
    policy = settings.patch(change, BOTH).policy
    assert getattr(policy, key) != getattr(Policy(), key)
    assert getattr(settings.patch(PolicyPatch(clear=(name,)), BOTH).policy, key) == getattr(Policy(), key)


def test_a_disabled_policy_is_preserved(settings: Settings) -> None:
    settings.patch(role("reviewer", model="claude-haiku-4-5"), BOTH)
    before = settings.patch(PolicyPatch(enabled=True), BOTH).policy
    settings.patch(PolicyPatch(enabled=False), BOTH)
    assert settings.patch(PolicyPatch(enabled=True), BOTH).policy == before


def test_an_unknown_role_in_the_file_is_kept_and_warned_about(settings: Settings) -> None:
    write(settings, '{"model_routing": {"roles": {"reviwer": {"effort": "low"}}, "max_paralel": 4}}')
    found = settings.read()
    assert any("did you mean 'reviewer'?" in warning for warning in found.warnings)
    assert any("did you mean 'max_parallel'?" in warning for warning in found.warnings)
    settings.patch(PolicyPatch(enabled=True), BOTH)
    settings.patch(PolicyPatch(clear_roles=("reviwer",)), BOTH)
    assert settings.read().policy.roles == {}


def test_the_file_is_for_its_owner_alone_and_nothing_else_is_left(settings: Settings) -> None:
    write(settings, "{}")
    settings.path.chmod(0o644)
    (settings.path.parent / ".hub-settings.json.new").write_text("of a killed writer")
    settings.patch(PolicyPatch(enabled=True), BOTH)
    assert stat.S_IMODE(settings.path.stat().st_mode) == 0o600
    assert {p.name for p in settings.path.parent.iterdir()} == {"hub-settings.json", "hub-settings.lock"}


def test_a_linked_settings_file_stays_a_link(settings: Settings, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    settings.path.parent.mkdir()
    settings.path.symlink_to(real)
    settings.patch(PolicyPatch(enabled=True), BOTH)
    assert settings.path.is_symlink()
    assert json.loads(real.read_text()) == {"model_routing": {"enabled": True}}


def test_a_writer_waits_for_a_plain_flock_and_then_sees_what_was_written(settings: Settings) -> None:
    write(settings, '{"model_routing": {}}')
    lock = os.open(settings.path.with_name("hub-settings.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    done = threading.Event()

    def patch() -> None:
        settings.patch(PolicyPatch(max_parallel=7), BOTH)
        done.set()

    writer = threading.Thread(target=patch)
    writer.start()
    assert not done.wait(0.2)
    write(settings, '{"other": 1, "model_routing": {"mode": "suggest"}}')
    os.close(lock)
    writer.join()
    policy = settings.read().policy
    assert (policy.mode, policy.max_parallel) == ("suggest", 7)
    assert json.loads(settings.path.read_text())["other"] == 1


def test_a_lock_that_stays_taken_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    write(settings, "{}")
    monkeypatch.setattr(settings_module, "LOCK_TIMEOUT", 0.05)
    lock = os.open(settings.path.with_name("hub-settings.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(SettingsError, match="settings lock"):
        settings.patch(PolicyPatch(enabled=True), BOTH)
    os.close(lock)
    assert settings.path.read_text() == "{}"


def test_a_project_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be written"):
        Settings(tmp_path / "gone").patch(PolicyPatch(enabled=True), BOTH)
