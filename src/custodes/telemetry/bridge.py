"""The only file that makes OpenTelemetry spans; imported only once the host has configured a provider."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    format_span_id,
    format_trace_id,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from custodes.telemetry import conventions as names
from custodes.telemetry.values import Value

_PROPAGATOR = TraceContextTextMapPropagator()


class Bridge:
    """Starts and ends spans on one tracer of the host's provider."""

    __slots__ = ("_tracer",)

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def start(
        self, name: str, parent: object, attributes: Mapping[str, Value], *, client: bool
    ) -> tuple[Span, Context]:
        """The span and the context that holds it. Without a parent, the host's current span is the parent."""
        under = cast("Context | None", parent)
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        span = self._tracer.start_span(name, context=under, kind=kind, attributes=attributes)
        return span, trace.set_span_in_context(span, under)

    def end(self, span: Span, error_type: str | None) -> None:
        if error_type is not None:
            span.set_attribute(names.ERROR_TYPE, error_type)
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def span_id(self, span: Span) -> str:
        return format_span_id(span.get_span_context().span_id)

    def parent_id(self, span: Span) -> str:
        """Of what the root hangs under in its host; "" where it is the root of all."""
        parent: SpanContext | None = getattr(span, "parent", None)
        return "" if parent is None else format_span_id(parent.span_id)

    def trace(self, span: Span) -> dict[str, str]:
        """The trace's id, flags and state, as a ``traceparent`` writes them."""
        context = span.get_span_context()
        return {
            "trace": format_trace_id(context.trace_id),
            "flags": f"{context.trace_flags:02x}",
            "state": context.trace_state.to_header(),
        }

    def environment(self, context: object) -> dict[str, str]:
        """W3C trace context as environment variables, as OpenTelemetry names them."""
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, cast("Context", context))
        if "traceparent" not in headers:
            return {}
        return {"TRACEPARENT": headers["traceparent"], "TRACESTATE": headers.get("tracestate", "")}


def configured_bridge() -> Bridge | None:
    """A bridge to the host's provider; None where that is a no-op or off (``OTEL_SDK_DISABLED``)."""
    tracer = trace.get_tracer(names.SCOPE, version("custodes"), schema_url=names.SCHEMA_URL)
    return None if isinstance(tracer, trace.NoOpTracer) else Bridge(tracer)
