from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from custodes.overseer.config import Choice
from custodes.overseer.reading import ConfigError, find_config, parse_config, read_config
from support.overseer import DEEPSEEK, GEMINI, GROK, KIMI, SEED_FILE, config, seed_config


def test_the_seeds_file_loads_as_it_is_printed() -> None:
    found = seed_config()
    assert (found.check_interval, found.health_timeout, found.cooldown_s) == (300, 15, 1_800)
    assert {name: each.quota_reset for name, each in found.providers.items()} == {
        "opencode-go": "daily",
        "grok-cli": "monthly",
        "gemini": "daily",
        "nvidia": "daily",
    }
    assert {name: row.choices for name, row in found.fallback_matrix.items()} == {
        "worker-code": (KIMI, GROK, GEMINI),
        "worker-fast": (GROK, KIMI, GEMINI),
        "worker-research": (GEMINI, KIMI),
        "worker-review": (DEEPSEEK, KIMI),
    }
    assert found.notify.log
    assert [channel.name for channel in found.notify.channels] == ["telegram"]
    assert {each.probe for each in found.providers.values()} == {"models"}


def test_the_shipped_example_is_the_seeds_whole_table() -> None:
    example = read_config(Path(__file__).parents[2] / "examples" / "supervisor.yaml")
    assert {name: row.choices for name, row in example.fallback_matrix.items()} == {
        "worker-code": (KIMI, GROK, GEMINI),
        "worker-fast": (GROK, KIMI, GEMINI),
        "worker-research": (GEMINI, KIMI, GROK),
        "worker-review": (DEEPSEEK, KIMI, GEMINI),
    }
    assert {row.last_resort for row in example.fallback_matrix.values()} == {"opencode-go"}
    assert example.providers == seed_config().providers, "the providers are the seed's, to the letter"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"chek_interval": 5}, "unknown key 'supervisor.chek_interval'; did you mean 'check_interval'?"),
        ({"providers": {"a": {"health_ur": "x"}}}, "unknown key 'providers.a.health_ur'"),
        ({"providers": {"a": {"health_url": None}}}, "providers.a: has no 'health_url'"),
        ({"providers": {"a": {"health_url": "localhost:1"}}}, "providers.a.health_url: must be an http"),
        (
            {"providers": {"a": {"key_env": "sk-123"}}},
            "providers.a.key_env: must be the name of an environment",
        ),
        ({"providers": {"a": {"quota_reset": "dayly"}}}, "did you mean 'daily'?"),
        ({"providers": {"a": {"probe": "complete"}}}, "providers.a.probe: invalid enum value 'complete'"),
        ({"providers": {"a": {"expect": [2]}}}, "providers.a.expect"),
        ({"row": {"primary": "a/-rf"}}, "fallback_matrix.w.primary: 'a/-rf' must be provider/model"),
        ({"providers": {"a": {"models": ["x y"]}}}, "providers.a.models: 'x y' is no model's id"),
        ({"providers": {"a": {"slow_seconds": float("nan")}}}, "providers.a.slow_seconds: must be above 0"),
        ({"providers": {"a": {"pools": ["claude"]}}}, "'claude' is no pool; one is adapter:bucket"),
        ({"providers": {"a\x9b31m": {"health_url": "http://h/m"}}}, "a provider's name has no blank"),
        ({"command": {"read": [], "switch": ["prog"]}}, "command: 'read' and 'switch' each name a program"),
        ({"check_interval": 0}, "supervisor.check_interval: must be 1 to 31622400"),
        ({"check_interval": 1e12}, "supervisor.check_interval: must be 1 to 31622400"),
        ({"row": {"primary": "one"}}, "fallback_matrix.w.primary: 'one' must be provider/model"),
        ({"row": {"fallbacks": ["bb/two"]}}, "there is no provider 'bb'"),
        ({"row": {"last_resort": "d"}}, "fallback_matrix.w.last_resort: there is no provider 'd'"),
        ({"row": {"actuator": "command"}}, "needs supervisor.command"),
        ({"notify": {"telegram": "123:token"}}, "notify.telegram: must be true or false"),
        ({"notify": {"telgram": True}}, "did you mean 'telegram'?"),
        ({"notify": {"channels": {"ops": {"url_env": "https://x"}}}}, "must be the name of the variable"),
        ({"recovery": {"checks": 0}}, "recovery: checks must be 1 or more"),
        ({"health_timeout": "15"}, "supervisor.health_timeout: expected `float`".replace("`", "")),
        (
            {"providers": {"a": {"switch": {"base_url": "http://127.0.0.1:1/v1"}}}},
            "providers.a.switch states base_url and providers.b.switch does not",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_field(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=r"^supervisor\.yaml: ") as caught:
        config(**changes)
    assert says in str(caught.value)


def test_no_secret_of_a_mistaken_file_is_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        config(providers={"a": {"health_url": "http://user:hunter2@127.0.0.1/v1", "key_env": "ok"}})
    assert "hunter2" not in str(caught.value)


def test_a_file_without_its_parts_says_which_is_missing() -> None:
    for raw, says in (
        ({}, "supervisor: is missing"),
        ({"supervisor": {"providers": {}}}, "fallback_matrix: is missing"),
        ({"supervizor": {}}, "did you mean 'supervisor'?"),
    ):
        with pytest.raises(ConfigError, match=says.replace("?", r"\?")):
            parse_config(raw, "f")


def test_a_models_own_slashes_stay_in_it() -> None:
    assert seed_config().fallback_matrix["worker-review"].primary == Choice(
        "nvidia", "deepseek-ai/deepseek-v4-pro"
    )


def test_it_is_looked_for_beside_the_hermes_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config FILE` takes another"):
        find_config(None, {"HERMES_HOME": str(tmp_path)})
    file = tmp_path / "supervisor.yaml"
    file.write_bytes(SEED_FILE.read_bytes())
    assert find_config(None, {"HERMES_HOME": str(tmp_path)}) == file
    assert find_config(tmp_path, {}) == file
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "supervisor.yaml").write_bytes(b"")
    assert find_config(None, {"HOME": str(tmp_path)}) == tmp_path / ".hermes" / "supervisor.yaml"


def test_by_default_the_model_moves_alone_under_its_whole_name() -> None:
    assert str(seed_config().setting("worker-fast", KIMI)) == "opencode-go/kimi-k2.7-code"


def test_a_role_of_our_own_policy_is_set_to_adapter_and_model() -> None:
    found = config(row={"actuator": "supervision"}).setting("w", Choice("a", "one"))
    assert (found.provider, found.model) == ("a", "one")


def test_a_file_whose_name_is_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read: File name too long"):
        find_config(Path("x" * 5_000), {})
