from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from custodes.policy.overview import Overview
from custodes.policy.policy import Cooldown, Policy, Telemetry
from custodes.policy.settings import Settings
from support.cos import Cos, Tiered


def policy_of(project: Path) -> Policy:
    return Settings(project).read().policy


def test_show_says_that_it_is_off_and_what_turns_it_on(cos: Cos, project: Path) -> None:
    answer = cos("supervision", "show")
    assert answer.code == 0
    assert "off; `cos supervision enable`" in answer.out
    assert not (project / ".coding-os").exists()


def test_show_as_json_is_one_document_that_reads_back_as_the_overview(cos: Cos, tiered: Tiered) -> None:
    answer = cos("supervision", "show", "--format", "json")
    overview = msgspec.json.decode(answer.out, type=Overview)
    assert overview.policy == Policy()
    assert [model.pool for model in overview.adapters[0].models] == ["fixture:large", "fixture:small"]
    assert overview.adapters[0].eligible
    assert not overview.adapters[0].ready
    assert "untrusted" in overview.adapters[0].reason


def test_enable_and_disable_keep_the_policy(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--role", "reviewer", "--role-model", "small-1")
    before = policy_of(tiered.project)
    assert cos("supervision", "enable").code == 0
    assert policy_of(tiered.project) == msgspec.structs.replace(before, enabled=True)
    assert cos("supervision", "disable").code == 0
    assert policy_of(tiered.project) == before


def test_a_change_is_told_alone_with_what_it_was_and_where_it_stands(cos: Cos, tiered: Tiered) -> None:
    file = (tiered.project / ".coding-os" / "hub-settings.json").resolve()
    words = ("--role", "reviewer", "--role-model", "small-1", "--mode", "adaptive")
    assert cos("supervision", "set", *words).out.splitlines() == [
        "mode: explicit → adaptive",
        "roles.reviewer.model: not set → small-1",
        f"written to {file}; `cos supervision show` has the whole policy",
        "supervision  off; `cos supervision enable` turns it on",
    ]
    cos("supervision", "enable")
    assert cos("supervision", "set", "--mode", "adaptive").out.splitlines() == [
        "mode: adaptive, as it was",
        f"nothing was changed in {file}",
    ]
    assert cos("supervision", "set", "--role", "reviewer", "--clear-role").out.splitlines()[0] == (
        "roles.reviewer.model: small-1 → not set"
    )
    whole = cos("supervision", "set", "--mode", "explicit", "--format", "json").out
    assert msgspec.json.decode(whole, type=Overview).policy == Policy(enabled=True)


def test_a_change_beside_an_entry_that_cannot_run_names_that_too(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--role", "reviewer", "--role-adapter", "fixture", "--role-model", "small-1")
    (tiered.project / ".coding-os.yaml").write_text("agents: []\n")
    told = cos("supervision", "set", "--max-parallel", "2").out
    assert "max_parallel: 3 → 2" in told
    assert "cannot run: role reviewer: no eligible dispatch adapter for 'fixture'" in told


def test_every_option_sets_its_own_key(cos: Cos, tiered: Tiered) -> None:
    words = {
        "--mode": "adaptive",
        "--complexity-threshold": "complex",
        "--fallback-policy": "next_eligible",
        "--max-parallel": "5",
        "--max-live": "50",
        "--ask-seconds": "0",
        "--cooldown-default-seconds": "7",
        "--cooldown-maximum-seconds": "70",
        "--cooldown-retry-after-ceiling-seconds": "700",
        "--orchestrator-adapter": "fixture",
        "--orchestrator-model": "large-1",
        "--orchestrator-effort": "high",
        "--role": "reviewer",
        "--role-adapter": "fixture",
        "--role-model": "small-1",
        "--role-effort": "low",
    }
    assert cos("supervision", "set", *[word for pair in words.items() for word in pair]).code == 0
    target = {"adapter": "fixture", "model": "large-1", "effort": "high"}
    assert json.loads((tiered.project / ".coding-os" / "hub-settings.json").read_text()) == {
        "model_routing": {
            "mode": "adaptive",
            "complexity_threshold": "COMPLEX",
            "fallback_policy": "next_eligible",
            "max_parallel": 5,
            "max_live": 50,
            "ask_seconds": 0,
            "cooldown": {"default_seconds": 7, "maximum_seconds": 70, "retry_after_ceiling_seconds": 700},
            "orchestrator": target,
            "roles": {"reviewer": {"adapter": "fixture", "model": "small-1", "effort": "low"}},
        }
    }


def test_every_key_of_the_policy_has_an_option_and_is_shown(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "enable")
    for words in (
        "--in-preset night --role architect --role-model large-1 --role-effort medium",
        "--mode adaptive --complexity-threshold CHAOTIC --fallback-policy next_eligible --max-parallel 7",
        "--max-live 70 --ask-seconds 6 --cooldown-default-seconds 17 --cooldown-maximum-seconds 171",
        "--cooldown-retry-after-ceiling-seconds 1711 --preset night",
        "--orchestrator-adapter fixture --orchestrator-model large-1 --orchestrator-effort high",
        "--role reviewer --role-adapter fixture --role-model small-1 --role-effort low",
        "--no-telemetry-relay --telemetry-prompts --telemetry-outputs --telemetry-tool-arguments",
    ):
        assert cos("supervision", "set", *words.split()).code == 0
    answer = cos("supervision", "show", "--format", "json")
    policy = msgspec.json.decode(answer.out, type=Overview).policy
    assert policy == policy_of(tiered.project)
    for key in Policy.__struct_fields__:
        assert getattr(policy, key) != getattr(Policy(), key), key
    for key in Cooldown.__struct_fields__:
        assert getattr(policy.cooldown, key) != getattr(Cooldown(), key), key
    for key in Telemetry.__struct_fields__:
        assert getattr(policy.telemetry, key) != getattr(Telemetry(), key), key
    assert all(msgspec.structs.astuple(policy.orchestrator))
    assert all(msgspec.structs.astuple(policy.roles["reviewer"]))
    text = cos("supervision", "show").out
    for word in (
        "on",
        "adaptive",
        "CHAOTIC",
        "next_eligible",
        "7 attempts",
        "70 begun",
        "waits 6 s",
        "17 s",
        "171 s",
        "1711 s",
    ):
        assert word in text
    for words in (
        "adapter fixture, model large-1, effort high",
        "small-1",
        "preset night (active): architect",
        "our own spans alone; contents: prompts, outputs, tool arguments",
    ):
        assert words in text


def test_every_key_of_the_policy_can_be_cleared_by_its_name(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--mode", "adaptive", "--max-parallel", "5", "--cooldown-default-seconds", "7")
    cos("supervision", "set", "--role", "reviewer", "--role-model", "small-1")
    cos("supervision", "set", "--in-preset", "night", "--role", "reviewer", "--role-model", "small-1")
    cos("supervision", "set", "--preset", "night", "--orchestrator-model", "large-1")
    clears = [word for name in Policy.__struct_fields__ for word in ("--clear", name)]
    assert cos("supervision", "set", *clears).code == 0
    assert policy_of(tiered.project) == Policy()


def test_an_empty_value_clears_one_field(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--role", "reviewer", "--role-model", "small-1", "--role-effort", "low")
    assert cos("supervision", "set", "--role", "reviewer", "--role-effort", "").code == 0
    entry = policy_of(tiered.project).roles["reviewer"]
    assert (entry.model, entry.effort) == ("small-1", "")


def test_clear_role_and_clear_orchestrator_take_the_whole_entry(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--role", "reviewer", "--role-model", "small-1", "--role-effort", "low")
    cos("supervision", "set", "--orchestrator-model", "large-1", "--orchestrator-effort", "high")
    assert cos("supervision", "set", "--role", "reviewer", "--clear-role", "--clear-orchestrator").code == 0
    assert policy_of(tiered.project) == Policy()


def test_a_role_in_a_preset_is_written_there_and_nowhere_else(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--in-preset", "night", "--role", "reviewer", "--role-model", "small-1")
    policy = policy_of(tiered.project)
    assert policy.presets["night"]["reviewer"].model == "small-1"
    assert policy.roles == {}
    cos("supervision", "set", "--in-preset", "night", "--role", "reviewer", "--clear-role")
    assert "reviewer" not in policy_of(tiered.project).presets.get("night", {})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--role", "reviwer", "--role-model", "x"], "did you mean 'reviewer'"),
        (["--mode", "adaptve"], 'Did you mean "adaptive"'),
        (["--complexity-threshold", "COMPLX"], "COMPLEX"),
        (["--mdoe", "adaptive"], "--mode"),
        (["--max-parallel", "many"], "--max-parallel"),
        (["--role", "reviewer"], "changes nothing"),
        (["--role-model", "x"], "need --role"),
        (["--in-preset", "night"], "needs --role"),
        ([], "nothing to set"),
    ],
)
def test_what_is_mistyped_is_one_line_with_what_would_work(
    cos: Cos, project: Path, words: list[str], says: str
) -> None:
    answer = cos("supervision", "set", *words)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert not (project / ".coding-os").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--role", "reviewer", "--role-model", "smal-1"],
            "model 'smal-1' is not declared by adapter 'fixture'",
        ),
        (
            ["--role", "reviewer", "--role-effort", "xhigh"],
            "effort 'xhigh' is not listed by adapter 'fixture'",
        ),
        (["--orchestrator-adapter", "fixtur"], "no eligible dispatch adapter for 'fixtur'"),
        (["--max-parallel", "99"], "1 to 16"),
        (["--clear", "cooldown.defaul_seconds"], "did you mean 'cooldown.default_seconds'"),
    ],
)
def test_what_could_never_be_dispatched_is_refused_and_nothing_written(
    cos: Cos, tiered: Tiered, words: list[str], says: str
) -> None:
    answer = cos("supervision", "set", *words, "--format", "json")
    assert answer.code == 1
    assert says in answer.document["error"]["message"]
    assert not (tiered.project / ".coding-os" / "hub-settings.json").exists()


@pytest.mark.parametrize("command", [["show"], ["enable"], ["set", "--mode", "suggest"]])
def test_malformed_settings_are_named_and_keep_their_bytes(
    cos: Cos, project: Path, command: list[str]
) -> None:
    file = project / ".coding-os" / "hub-settings.json"
    file.parent.mkdir()
    file.write_bytes(b'{"model_routing": {"enabled": true,}}')
    answer = cos("supervision", *command)
    assert answer.code == 1
    assert str(file) in answer.err
    assert answer.err.count("\n") == 1
    assert file.read_bytes() == b'{"model_routing": {"enabled": true,}}'


def test_a_saved_target_that_is_gone_is_shown_with_the_reason(cos: Cos, tiered: Tiered) -> None:
    cos("supervision", "set", "--role", "reviewer", "--role-adapter", "fixture", "--role-model", "small-1")
    (tiered.project / ".coding-os.yaml").write_text("agents: []\n")
    answer = cos("supervision", "show")
    assert answer.code == 0
    assert "adapter fixture, model small-1" in answer.out
    assert "cannot run: role reviewer: no eligible dispatch adapter for 'fixture'" in answer.out


def test_the_modules_gate_is_told_from_the_features(cos: Cos, project: Path) -> None:
    file = project / ".coding-os" / "hub-settings.json"
    file.parent.mkdir()
    file.write_text('{"cognition": {"enabled": false}, "model_routing": {"enabled": true}}')
    assert "cognition.enabled: false" in cos("supervision", "show").out
    assert cos("supervision", "show", "--format", "json").document["supervised"] is False


def test_a_project_folder_is_named_by_d(cos: Cos, tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert cos("supervision", "enable", "-d", str(other)).code == 0
    assert policy_of(other).enabled
    assert not policy_of(project).enabled
    answer = cos("supervision", "show", "-d", str(tmp_path / "none"))
    assert (answer.code, "is no folder" in answer.err) == (2, True)
