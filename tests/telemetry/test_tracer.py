"""The tree itself: names, parents, status, context for child processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)

from custodes.telemetry import NOTHING, SpanHandle, Tracer, attach
from custodes.telemetry.bridge import Bridge
from custodes.telemetry.span_handle import error_type_of


@dataclass(frozen=True)
class Limits:
    children: int | None = None
    wall_seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    depth: int | None = None


LIMITS = Limits(children=3, wall_seconds=60.0, tokens=9, usd=0.5)


def attempt(tracer: Tracer, parent: SpanHandle, number: int = 1, reason: str | None = None) -> SpanHandle:
    return tracer.attempt(
        parent,
        number=number,
        adapter="runtime",
        pool="runtime:small",
        health_state="healthy",
        probe=False,
        fallback_reason=reason,
    )


def call(tracer: Tracer, parent: SpanHandle | None, role: str = "reviewer") -> SpanHandle:
    return tracer.call(parent, role=role, provider="vendor", adapter="runtime", model="small-1", effort="low")


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {f"{span.kind.name} {span.name}": span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def assert_one_tree(spans: tuple[ReadableSpan, ...]) -> None:
    """One trace, one root, no orphan."""
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert sum(span.parent is None for span in spans) == 1
    ids = {span.context.span_id for span in spans if span.context}
    assert all(span.parent.span_id in ids for span in spans if span.parent)


def test_the_tree_has_the_names_kinds_and_attributes_of_the_conventions(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    with (
        tracer.conversation("ours") as conversation,
        tracer.fan_out(conversation, "review", LIMITS) as fan,
        tracer.child(fan, "reviewer", "run-1", "look") as child,
        attempt(tracer, child, 2, "capacity") as tried,
        call(tracer, tried) as called,
    ):
        called.set(native_conversation="theirs", served_model="small-1b", cost_usd=0.25)
        called.set(input_tokens=7, output_tokens=0, cached_input_tokens=3)
        tried.set(outcome="known_failed", category="capacity", retry_after_s=42)
        fan.set(fan_out_size=3, spent_tokens=7, spent_usd=0.25)
    spans = exporter.get_finished_spans()
    assert [(span.name, span.kind) for span in reversed(spans)] == [
        ("invoke_agent parent", SpanKind.INTERNAL),
        ("invoke_workflow review", SpanKind.INTERNAL),
        ("invoke_agent reviewer", SpanKind.INTERNAL),
        ("dispatch runtime", SpanKind.INTERNAL),
        ("invoke_agent reviewer", SpanKind.CLIENT),
    ]
    assert [attributes(span) for span in reversed(spans)] == [
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "parent",
            "gen_ai.conversation.id": "ours",
        },
        {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": "review",
            "custodes.budget.children": 3,
            "custodes.budget.wall_seconds": 60.0,
            "custodes.budget.tokens": 9,
            "custodes.budget.usd": 0.5,
            "custodes.budget.spent.tokens": 7,
            "custodes.budget.spent.usd": 0.25,
            "custodes.fan_out.size": 3,
        },
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "reviewer",
            "custodes.run.id": "run-1",
            "custodes.work.name": "look",
        },
        {
            "custodes.attempt.number": 2,
            "custodes.adapter": "runtime",
            "custodes.pool": "runtime:small",
            "custodes.health.state": "healthy",
            "custodes.health.probe": False,
            "custodes.fallback.reason": "capacity",
            "custodes.outcome": "known_failed",
            "custodes.error.category": "capacity",
            "custodes.retry_after_s": 42,
        },
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "reviewer",
            "gen_ai.provider.name": "vendor",
            "gen_ai.agent.id": "reviewer",
            "custodes.adapter": "runtime",
            "gen_ai.request.model": "small-1",
            "gen_ai.request.reasoning.level": "low",
            "gen_ai.conversation.id": "theirs",
            "gen_ai.response.model": "small-1b",
            "custodes.cost_usd": 0.25,
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 0,
            "gen_ai.usage.cache_read.input_tokens": 3,
        },
    ]
    parents = [span.parent.span_id if span.parent else None for span in reversed(spans)]
    assert parents == [None, *(span.context.span_id for span in reversed(spans[1:]) if span.context)]
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET}


def test_a_conversation_id_is_never_invented(tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    tracer.conversation("").end()
    call(tracer, None).end()
    assert not any("gen_ai.conversation.id" in attributes(span) for span in exporter.get_finished_spans())


def test_the_conversation_hangs_under_the_span_the_host_has_open(
    tracer: Tracer, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with provider.get_tracer("host").start_as_current_span("request") as request:
        conversation = tracer.conversation("ours")
    tracer.child(conversation, "analyst", "run-1").end()
    conversation.end()
    root, child = (
        by_name(exporter)["INTERNAL invoke_agent parent"],
        by_name(exporter)["INTERNAL invoke_agent analyst"],
    )
    assert root.parent == request.get_span_context()
    assert child.parent == root.context


def test_a_handle_outweighs_the_ambient_span(tracer: Tracer, provider: TracerProvider) -> None:
    conversation = tracer.conversation("ours")
    with provider.get_tracer("host").start_as_current_span("another"):
        child = tracer.child(conversation, "analyst", "run-1")
    assert child.traceparent()["TRACEPARENT"][3:35] == conversation.traceparent()["TRACEPARENT"][3:35]
    child.end()
    conversation.end()


def test_three_roles_two_attempts_each_and_nested_children_across_threads_are_one_tree(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    def work(parent: SpanHandle, role: str, depth: int) -> None:
        with tracer.child(parent, role, f"{role}-{depth}") as child:
            for number in (1, 2):
                with attempt(tracer, child, number) as tried, call(tracer, tried, role) as called:
                    if depth and number == 2:
                        work(called, role, depth - 1)

    with tracer.conversation("ours") as conversation, tracer.fan_out(conversation, "review") as fan:
        threads = [
            threading.Thread(target=work, args=(fan, role, 2))
            for role in ("analyst", "architect", "reviewer")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spans = exporter.get_finished_spans()
    assert len(spans) == 2 + 3 * 3 * 5
    assert_one_tree(spans)
    named = {
        span.context.span_id: attributes(span).get("gen_ai.agent.name") for span in spans if span.context
    }
    calls = {span.context.span_id: span for span in spans if span.kind is SpanKind.CLIENT and span.context}
    nested = [span for span in spans if span.parent and span.parent.span_id in calls]
    assert len(nested) == 3 * 2
    assert all(attributes(s)["gen_ai.agent.name"] == named[s.parent.span_id] for s in nested if s.parent)


def test_a_failure_that_a_fallback_covered_marks_its_attempt_alone(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    with tracer.conversation("ours") as conversation, tracer.child(conversation, "analyst", "run-1") as child:
        with attempt(tracer, child) as first:
            first.set(category="capacity", outcome="known_failed", retry_after_s=9)
            first.end(error_type="capacity")
        with attempt(tracer, child, 2, "capacity"):
            pass
    failed = [span for span in exporter.get_finished_spans() if span.status.status_code is StatusCode.ERROR]
    assert [attributes(span)["custodes.attempt.number"] for span in failed] == [1]
    assert attributes(failed[0])["error.type"] == "capacity"


@pytest.mark.anyio
async def test_a_cancelled_span_ends_as_an_error_and_the_cancellation_goes_on(
    tracer: Tracer, exporter: InMemorySpanExporter, anyio_backend: str
) -> None:
    went_on = False
    with anyio.CancelScope() as scope:
        try:
            with tracer.child(None, "analyst", "run-1"):
                scope.cancel()
                await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            went_on = True
            raise
    assert went_on
    assert scope.cancelled_caught
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert attributes(span)["error.type"] == "cancelled"


def test_of_an_exception_only_its_type_is_kept(tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="sk-canary"), tracer.child(None, "analyst", "run-1"):
        raise ValueError("sk-canary")
    (span,) = exporter.get_finished_spans()
    assert attributes(span)["error.type"] == "ValueError"
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()
    assert "sk-canary" not in span.to_json()


def test_the_first_end_wins_and_nothing_is_recorded_after_it(
    tracer: Tracer, exporter: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    with tracer.child(None, "analyst", "run-1") as child:
        child.end(error_type="timeout")
        child.end()
        child.set(outcome="unknown")
    (span,) = exporter.get_finished_spans()
    assert attributes(span)["error.type"] == "timeout"
    assert "custodes.outcome" not in attributes(span)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("raised", "name"),
    [
        (ValueError("x"), "ValueError"),
        (ValueError, "ValueError"),
        (asyncio.CancelledError(), "cancelled"),
        (asyncio.CancelledError, "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (BaseExceptionGroup("", [asyncio.CancelledError(), ExceptionGroup("", [OSError()])]), "OSError"),
        (ExceptionGroup("", [ValueError("a"), ValueError("b")]), "ValueError"),
        (ExceptionGroup("", [ValueError("a"), OSError()]), "ExceptionGroup"),
        (BaseExceptionGroup("", [asyncio.CancelledError()]), "cancelled"),
    ],
)
def test_the_error_type_of_something_raised(raised: BaseException | type[BaseException], name: str) -> None:
    assert error_type_of(raised) == name


def test_end_for_nothing_raised_ends_well(tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    tracer.fan_out(None, "review").end_for(None)
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is StatusCode.UNSET


def test_a_child_process_gets_the_sampled_context_and_no_stale_state(tracer: Tracer) -> None:
    span = call(tracer, None)
    context = get_current_span(span.context).get_span_context()  # type: ignore[arg-type]  # opaque elsewhere
    span.end()
    inherited = {"TRACEPARENT": f"00-{'1' * 32}-{'2' * 16}-01", "TRACESTATE": "stale=1"}
    environment = inherited | span.traceparent()
    assert (
        environment["TRACEPARENT"]
        == f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    )
    assert context.trace_flags.sampled
    assert environment["TRACESTATE"] == ""


@pytest.mark.parametrize("flag", [TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)])
def test_children_carry_the_sampling_flag_and_state_of_the_hosts_parent(
    tracer: Tracer, flag: TraceFlags
) -> None:
    remote = SpanContext(
        0xA, 0xB, is_remote=True, trace_flags=flag, trace_state=TraceState([("vendor", "v")])
    )
    with attach(set_span_in_context(NonRecordingSpan(remote))):
        conversation = tracer.conversation("ours")
    called = call(tracer, conversation)
    version, trace_id, span_id, flags = called.traceparent()["TRACEPARENT"].split("-")
    assert (version, trace_id) == ("00", f"{0xA:032x}")
    assert span_id not in (f"{0xB:016x}", "0" * 16)
    assert int(flags, 16) & 1 == flag & 1
    assert called.traceparent()["TRACESTATE"] == "vendor=v"
    called.end()
    conversation.end()


def test_a_trace_that_is_sampled_out_exports_nothing_and_says_so_to_children() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    called = call(Tracer(Bridge(provider.get_tracer("custodes"))), None)
    assert int(called.traceparent()["TRACEPARENT"][-2:], 16) & 1 == 0
    called.set(input_tokens=1)
    called.end(error_type="timeout")
    provider.shutdown()


def test_a_hosts_own_spans_nest_under_an_attached_handle(
    tracer: Tracer, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with call(tracer, None) as called, attach(called.context):
        provider.get_tracer("host").start_span("GET").end()
    spans = by_name(exporter)
    assert spans["INTERNAL GET"].parent == spans["CLIENT invoke_agent reviewer"].context


BEGINNINGS: list[Callable[[Tracer], SpanHandle]] = [
    lambda tracer: tracer.conversation("ours"),
    lambda tracer: tracer.fan_out(None, "review", Limits(children=1)),
    lambda tracer: tracer.child(None, "analyst", "run-1"),
    lambda tracer: attempt(tracer, tracer.conversation("ours")),
    lambda tracer: call(tracer, None),
]


@pytest.mark.parametrize("begin", BEGINNINGS)
def test_nothing_has_the_same_face_and_carries_nothing(begin: Callable[[Tracer], SpanHandle]) -> None:
    with begin(NOTHING) as span:
        span.set(input_tokens=1)
        assert span.traceparent() == {}
        assert span.context is None
        span.end(error_type="timeout")
    with pytest.raises(ValueError, match="goes on"), begin(NOTHING):
        raise ValueError("goes on")
    assert begin(NOTHING) is span
