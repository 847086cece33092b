"""Spans that were not made here, handed to a provider as they are: with their own ids, times and source.

A provider makes ids itself, so what has one already goes to its processors directly. That is the SDK's own
face; a provider of another make gets none of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Tracer
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from custodes.telemetry import conventions as names
from custodes.telemetry.span_record import SpanRecord


def emit(tracer: trace.Tracer, records: Iterable[SpanRecord]) -> None:
    """From any thread. A record without a source is one of ours."""
    for record in records:
        if isinstance(tracer, Tracer):
            tracer.span_processor.on_end(_span(record, tracer.resource))


def _span(record: SpanRecord, ours: Resource) -> ReadableSpan:
    source = record.source
    stated = {"service.name": source.service, "service.version": source.version}
    named = {name: value for name, value in stated.items() if value}
    return ReadableSpan(
        name=record.name,
        context=_context(record, record.id),
        parent=_context(record, record.parent) if record.parent else None,
        resource=Resource(named) if named else ours,
        attributes=record.attributes,
        kind=trace.SpanKind[record.kind.upper()],
        status=trace.Status(trace.StatusCode.ERROR if record.error else trace.StatusCode.UNSET),
        start_time=record.begun,
        end_time=record.ended,
        instrumentation_scope=InstrumentationScope(source.scope or names.SCOPE),
    )


def _context(record: SpanRecord, span_id: str) -> trace.SpanContext:
    flags = trace.TraceFlags(record.flags)
    return trace.SpanContext(int(record.trace, 16), int(span_id, 16), is_remote=False, trace_flags=flags)
