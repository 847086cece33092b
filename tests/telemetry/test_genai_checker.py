"""The checker itself: a checker that lets everything pass would prove nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, Status, StatusCode

from support.genai import violations

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
