"""The only file that makes OpenTelemetry spans; imported only once the host has configured a provider."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
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
