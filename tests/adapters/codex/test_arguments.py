"""The command line and environment Codex is given."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from custodes.adapters import DispatchRequest
from custodes.adapters.codex.arguments import arguments, environment, named_variables
from custodes.adapters.traces import exporter


def asked(**fields: Any) -> DispatchRequest:
    plain = DispatchRequest(
        run_id="r", role="reviewer", prompt="look", mutable=False, cwd="/tmp", timeout_s=1.0
    )
    return msgspec.structs.replace(plain, **fields)


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_the_sandbox_is_as_wide_as_the_work_and_never_wider() -> None:
    assert after(arguments("codex", asked(), "m", "", None), "--sandbox") == "read-only"
    assert after(arguments("codex", asked(mutable=True), "m", "", None), "--sandbox") == "workspace-write"
    for mutable in (False, True):
        words = " ".join(arguments("codex", asked(mutable=mutable), "m", "", None))
        assert "dangerously" not in words
        assert "approve" not in words


def test_what_is_asked_for_is_passed_on() -> None:
    words = arguments("codex", asked(effort="high", resume="t1"), "gpt-6.2-sol", "/tmp/schema.json", None)
    assert after(words, "--model") == "gpt-6.2-sol"
    assert 'model_reasoning_effort="high"' in words
    assert after(words, "--output-schema") == "/tmp/schema.json"
    assert words[-3:] == ["resume", "t1", "-"]
    assert arguments("codex", asked(), "m", "", None)[-1] == "-"


def test_spans_go_to_the_operators_collector_and_its_headers_not_onto_the_command_line() -> None:
    ours = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=x"}
    found = exporter({"TRACEPARENT": "00-1-2-01"}, ours)
    words = arguments("codex", asked(), "m", "", found)
    wanted = 'otel.trace_exporter={otlp-http={endpoint="http://h:4318/v1/traces",protocol="binary"}}'
    assert wanted in words
    assert "authorization" not in " ".join(words)
    assert tomllib.loads(wanted.removeprefix("otel."))
    given = environment(asked(environment={"TRACEPARENT": "00-1-2-01"}), ours)
    assert given["OTEL_EXPORTER_OTLP_HEADERS"] == "authorization=x"
    assert "OTEL_EXPORTER_OTLP_HEADERS" not in environment(asked(), ours)


def test_the_keys_its_configuration_names_go_along_and_no_others(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(
        '[model_providers.here]\nenv_key = "HERE_KEY"\nenv_http_headers = {"x-team" = "HERE_TEAM"}\n'
    )
    ours = {"HERE_KEY": "1", "HERE_TEAM": "2", "CODEX_API_KEY": "3", "ANTHROPIC_API_KEY": "4"}
    given = environment(asked(environment={"HOME": str(tmp_path), "CUSTODES_RUN": "r1"}), ours)
    assert [given[name] for name in ("HERE_KEY", "HERE_TEAM", "CODEX_API_KEY")] == ["1", "2", "3"]
    assert given["CUSTODES_RUN"] == "r1"
    assert "ANTHROPIC_API_KEY" not in given


def test_a_configuration_that_cannot_be_read_names_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "config.toml"
    broken.write_text("not = [toml")
    assert named_variables(broken) == []
    assert named_variables(tmp_path / "none.toml") == []
