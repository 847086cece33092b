"""The command line and environment Claude Code is given."""

from __future__ import annotations

from typing import Any

import msgspec

from custodes.adapters import DispatchRequest
from custodes.adapters.claude.arguments import READ_TOOLS, arguments, environment


def asked(**fields: Any) -> DispatchRequest:
    plain = DispatchRequest(
        run_id="r", role="reviewer", prompt="look", mutable=False, cwd="/tmp", timeout_s=1.0
    )
    return msgspec.structs.replace(plain, **fields)


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_read_only_work_has_no_tool_that_writes_and_no_server_of_the_users() -> None:
    words = arguments("claude", asked(), "claude-sonnet-5")
    assert after(words, "--permission-mode") == "plan"
    assert set(after(words, "--tools").split(",")).isdisjoint({"Bash", "Edit", "Write", "NotebookEdit"})
    assert after(words, "--tools") == ",".join(READ_TOOLS)
    assert "--strict-mcp-config" in words


def test_nothing_ever_skips_the_users_permissions() -> None:
    for mutable in (False, True):
        words = " ".join(arguments("claude", asked(mutable=mutable), "m"))
        assert "dangerously" not in words
        assert "bypass" not in words
        assert "--allowed" not in words


def test_the_prompt_is_no_word_of_the_command_line() -> None:
    assert "look" not in arguments("claude", asked(), "m")


def test_what_is_asked_for_is_passed_on_and_nothing_else() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}
    words = arguments("claude", asked(effort="high", schema=schema, resume="s1"), "claude-opus-5")
    assert after(words, "--model") == "claude-opus-5"
    assert after(words, "--effort") == "high"
    assert after(words, "--resume") == "s1"
    assert msgspec.json.decode(after(words, "--json-schema"))["type"] == "object"
    plain = arguments("claude", asked(), "m")
    assert {"--effort", "--json-schema", "--resume"}.isdisjoint(plain)


def test_only_what_it_needs_of_our_environment_goes_along() -> None:
    ours = {
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_API_KEY": "other",
        "AWS_SECRET_ACCESS_KEY": "cloud",
        "CLAUDE_CODE_MAX_RETRIES": "10",
    }
    given = environment(asked(environment={"CUSTODES_RUN": "r1"}), ours)
    assert given["CUSTODES_RUN"] == "r1"
    assert given["DISABLE_AUTOUPDATER"] == given["DISABLE_TELEMETRY"] == "1"
    assert given["CLAUDE_CODE_MAX_RETRIES"] != "10"
    assert given["ANTHROPIC_API_KEY"] == "k"
    assert {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"}.isdisjoint(given)
    cloud = environment(asked(), {**ours, "CLAUDE_CODE_USE_BEDROCK": "1"})
    assert "AWS_SECRET_ACCESS_KEY" in cloud


def test_it_sends_spans_only_into_a_tree_and_only_to_the_operators_collector() -> None:
    collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}
    trace = {"TRACEPARENT": "00-1-2-01"}
    traced = environment(asked(environment=trace), collector)
    assert traced["OTEL_TRACES_EXPORTER"] == "otlp"
    assert traced["OTEL_METRICS_EXPORTER"] == traced["OTEL_LOGS_EXPORTER"] == "none"
    assert traced["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://h:4318"
    for carried, ours in (({}, collector), (trace, {})):
        assert "OTEL_TRACES_EXPORTER" not in environment(asked(environment=carried), ours)
