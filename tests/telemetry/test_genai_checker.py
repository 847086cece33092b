"""The checker itself: a checker that lets everything pass would prove nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanKind, Status, StatusCode

from custodes.telemetry import current_tracer
from support.genai import PEERS, SpanWatch, violations

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "reviewer"}


def span(
    attributes: Mapping[str, str | int],
    name: str = "invoke_agent reviewer",
    kind: SpanKind = SpanKind.INTERNAL,
    status: StatusCode = StatusCode.UNSET,
) -> ReadableSpan:
    return ReadableSpan(name=name, kind=kind, attributes=attributes, status=Status(status))


def test_a_conforming_span_has_no_violations() -> None:
    assert violations(span(AGENT)) == []


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (span({**AGENT, "gen_ai.pool": "x"}), "gen_ai.pool is not registered"),
        (span({**AGENT, "gen_ai.system": "x"}), "gen_ai.system is deprecated for gen_ai.provider.name"),
        (span({**AGENT, "gen_ai.usage.input_tokens": "7"}), "gen_ai.usage.input_tokens is a str, not a int"),
        (
            span({**AGENT, "gen_ai.usage.input_tokens": True}),
            "gen_ai.usage.input_tokens is a bool, not a int",
        ),
        (span({**AGENT, "gen_ai.input.messages": "x"}), "gen_ai.input.messages is content nobody asked for"),
        (span(AGENT, kind=SpanKind.CLIENT), "gen_ai.provider.name is required"),
        (span(AGENT, kind=SpanKind.SERVER), "invoke_agent is never a span of kind server"),
        (span(AGENT, name="reviewer"), "the name is 'reviewer', not 'invoke_agent reviewer'"),
        (span({"gen_ai.operation.name": "dispatch"}), "dispatch is no registered operation"),
        (span(AGENT, status=StatusCode.ERROR), "the status is ERROR, error.type is None"),
        (span({**AGENT, "error.type": "timeout"}), "the status is UNSET, error.type is 'timeout'"),
        (span(AGENT, status=StatusCode.OK), "the status is set to OK"),
    ],
)
def test_each_violation_is_named(bad: ReadableSpan, fault: str) -> None:
    assert fault in violations(bad)


def test_what_watches_the_whole_suite_sees_a_violation_and_a_span_that_is_never_ended(
    span_watch: SpanWatch,
) -> None:
    """Acceptance T10: `tests/conftest.py` puts one over every span that is emitted in the test run."""
    own = SpanWatch()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(own)
    provider.get_tracer("t").start_span("bad", attributes={"gen_ai.pool": "x"}).end()
    provider.get_tracer(PEERS[0]).start_span("a peer's own", attributes={"gen_ai.pool": "x"}).end()
    provider.get_tracer("mcp-python-sdk").start_span("theirs", attributes={"gen_ai.pool": "x"}).end()
    left_open = provider.get_tracer("t").start_span("left open")
    assert own.faults == ["bad: gen_ai.pool is not registered"]
    assert own.unended == ["left open"]
    left_open.end()
    assert own.unended == []
    with current_tracer().conversation("ours"):
        assert span_watch.unended == ["invoke_agent parent"]
