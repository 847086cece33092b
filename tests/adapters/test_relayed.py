"""A runtime's own telemetry is on, without prompts, where its attempt brings an address for it; else off."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from custodes.adapters.gemini import arguments as gemini
from custodes.adapters.port import DispatchRequest
from custodes.adapters.qwen import arguments as qwen

Environment = Callable[[DispatchRequest, Mapping[str, str]], dict[str, str]]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
RUNTIMES = [
    pytest.param(gemini.environment, "GEMINI_TELEMETRY_ENABLED", "GEMINI_TELEMETRY_LOG_PROMPTS", id="gemini"),
    pytest.param(qwen.environment, "QWEN_TELEMETRY_ENABLED", "QWEN_TELEMETRY_LOG_PROMPTS", id="qwen"),
]


def request(**carried: str) -> DispatchRequest:
    return DispatchRequest(
        run_id="r", role="reviewer", prompt="p", mutable=False, cwd="/", timeout_s=1, environment=carried
    )


@pytest.mark.parametrize(("environment", "enabled", "prompts"), RUNTIMES)
def test_an_address_of_the_attempts_own_switches_it_on(
    environment: Environment, enabled: str, prompts: str
) -> None:
    found = environment(request(**{ENDPOINT: "http://127.0.0.1:1/word"}), {ENDPOINT: "http://operator"})
    assert found[enabled] == "true"
    assert found[prompts] == "false"
    assert found[ENDPOINT] == "http://127.0.0.1:1/word"


@pytest.mark.parametrize(("environment", "enabled", "prompts"), RUNTIMES)
def test_the_operators_own_address_alone_does_not(
    environment: Environment, enabled: str, prompts: str
) -> None:
    found = environment(request(TRACEPARENT="00-1-2-01"), {ENDPOINT: "http://operator"})
    assert found[enabled] in ("false", "0")
    assert ENDPOINT not in found
    assert prompts not in found
