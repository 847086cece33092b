"""The only file that makes OpenTelemetry spans; imported only once the host has configured a provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, cast

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
from custodes.telemetry.providers import Providers
from custodes.telemetry.span_record import SpanRecord
from custodes.telemetry.values import Value

if TYPE_CHECKING:  # loaded only where a meter is configured
    from custodes.telemetry.metrics import Meters

_PROPAGATOR = TraceContextTextMapPropagator()


class Bridge:
    """Starts and ends spans on one tracer; those that are no spans where only metrics are configured."""

    __slots__ = ("_tracer", "meters")

    def __init__(self, tracer: trace.Tracer, meters: Meters | None = None) -> None:
        self._tracer = tracer
        self.meters: Meters | None = meters

    @classmethod
    def of(cls, providers: Providers) -> Bridge | None:
        """None where what is configured does nothing (a no-op provider, ``OTEL_SDK_DISABLED``)."""
        provider = providers.tracer or trace.NoOpTracerProvider()
        tracer = provider.get_tracer(names.SCOPE, version("custodes"), schema_url=names.SCHEMA_URL)
        if providers.meter is None:
            return None if isinstance(tracer, trace.NoOpTracer) else cls(tracer)
        from custodes.telemetry.metrics import Meters

        return cls(tracer, Meters(providers.meter))

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

    @property
    def takes_records(self) -> bool:
        """Whether ``emit`` gets anywhere: the provider is the SDK's own."""
        from opentelemetry.sdk.trace import Tracer

        return isinstance(self._tracer, Tracer)

    def emit(self, records: Iterable[SpanRecord]) -> None:
        """Hand on spans that were not made here (:mod:`~custodes.telemetry.emission`)."""
        from custodes.telemetry.emission import emit

        emit(self._tracer, records)

    def span_id(self, span: Span) -> str:
        return format_span_id(span.get_span_context().span_id)

    def parent_id(self, span: Span) -> str:
        """Of what the root hangs under in its host; "" where it is the root of all."""
        parent: SpanContext | None = getattr(span, "parent", None)
        return "" if parent is None else format_span_id(parent.span_id)

    def trace(self, span: Span) -> dict[str, str]:
        """The trace's id, flags and state, as a ``traceparent`` writes them; empty without a trace."""
        context = span.get_span_context()
        if not context.is_valid:
            return {}
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
