"""OTLP's two forms of spans over HTTP, read; and the JSON one, written.

Reading keeps what a SpanRecord holds and skips the rest: events, links, nested values and status texts are
never looked at. JSON has its own rules here: ids are hexadecimal, 64-bit numbers may be text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from custodes.telemetry.span_record import KINDS, Kind, Source, SpanRecord
from custodes.telemetry.values import Value
from custodes.telemetry.wire import unfolds_beyond

_ERROR = 2
_KIND_NAMES = {f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS}


class _AnyValue(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | None = None


class _KeyValue(msgspec.Struct):
    key: str
    value: _AnyValue = msgspec.field(default_factory=_AnyValue)


class _Status(msgspec.Struct):
    code: int | str = 0


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    name: str = ""
    parent_span_id: str = ""
    kind: int | str = 0
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: list[_KeyValue] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(msgspec.Struct):
    name: str = ""


class _ScopeSpans(msgspec.Struct, rename="camel"):
    scope: _Scope = msgspec.field(default_factory=_Scope)
    spans: list[_Span] = []


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] = []


class _ResourceSpans(msgspec.Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_ScopeSpans] = []


class _Request(msgspec.Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []


MAX_SPANS = 10_000
"""Spans of one request, with the groups they stand in; an SDK sends 512. An empty one has two bytes, and its
record hundreds."""
MAX_MESSAGES = 500_000
"""Of whatever kind: groups, spans, attributes, values. It bounds what is made of a body to some 100 MB."""
_MAX_TIME = 2**63


class NotOtlpError(ValueError):
    """A body that is no OTLP request of spans, or one of more than :data:`MAX_SPANS`
    or :data:`MAX_MESSAGES`."""


def read_json(body: bytes) -> list[SpanRecord]:
    """:raises NotOtlpError: it is none."""
    if body.count(b"{") > MAX_MESSAGES:
        raise NotOtlpError("TooManyMessages")
    try:
        request = msgspec.json.decode(body, type=_Request)
        _bound(request)
        return [
            _record(span, source)
            for group in request.resource_spans
            for resource in (_values(group.resource.attributes),)  # once for all of its spans
            for scope in group.scope_spans
            for source in (_source(scope.scope.name, resource),)
            for span in scope.spans
        ]
    except NotOtlpError:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotOtlpError(type(error).__name__) from None


def read_protobuf(body: bytes) -> list[SpanRecord]:
    """:raises NotOtlpError: it is none.
    :raises ImportError: the package with OTLP's messages (extra ``otel``) is not installed.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no stubs of its own
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    if unfolds_beyond(MAX_MESSAGES, body, ExportTraceServiceRequest.DESCRIPTOR):
        raise NotOtlpError("TooManyMessages")
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        raise NotOtlpError("DecodeError") from None
    _bound(request)
    return [
        SpanRecord(
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            kind=_kind(span.kind),
            begun=_time(span.start_time_unix_nano),
            ended=_time(span.end_time_unix_nano),
            attributes=_messages(span.attributes),
            error=span.status.code == _ERROR,
            source=source,
        )
        for group in request.resource_spans
        for resource in (_messages(group.resource.attributes),)  # once for all of its spans
        for scope in group.scope_spans
        for source in (_source(scope.scope.name, resource),)
        for span in scope.spans
    ]


def write_json(records: Sequence[SpanRecord]) -> bytes:
    """One OTLP request, as a collector takes it on ``/v1/traces``."""
    return msgspec.json.encode(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": _pairs(_resource(source))},
                    "scopeSpans": [
                        {"scope": {"name": source.scope}, "spans": [_written(span) for span in spans]}
                    ],
                }
                for source, spans in _by_source(records)
            ]
        }
    )


def _by_source(records: Sequence[SpanRecord]) -> Iterable[tuple[Source, Iterable[SpanRecord]]]:
    def key(record: SpanRecord) -> tuple[str, str, str]:
        source = record.source
        return source.service, source.version, source.scope

    for parts, spans in groupby(sorted(records, key=key), key):
        yield Source(*parts), spans


def _resource(source: Source) -> dict[str, Value]:
    said = {"service.name": source.service, "service.version": source.version}
    return {name: value for name, value in said.items() if value}


def _written(span: SpanRecord) -> dict[str, Any]:
    return {
        "traceId": span.trace,
        "spanId": span.id,
        "parentSpanId": span.parent,
        "flags": span.flags,
        "name": span.name,
        "kind": KINDS.index(span.kind) + 1,
        "startTimeUnixNano": str(span.begun),
        "endTimeUnixNano": str(span.ended),
        "attributes": _pairs(span.attributes),
        "status": {"code": _ERROR} if span.error else {},
    }


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any(value)} for name, value in attributes.items()]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_any(each) for each in value]}}


def _record(span: _Span, source: Source) -> SpanRecord:
    return SpanRecord(
        trace=span.trace_id.lower(),
        id=span.span_id.lower(),
        parent=span.parent_span_id.lower(),
        name=span.name,
        kind=_kind(span.kind),
        begun=_time(span.start_time_unix_nano),
        ended=_time(span.end_time_unix_nano),
        attributes=_values(span.attributes),
        error=span.status.code in (_ERROR, "STATUS_CODE_ERROR"),
        source=source,
    )


def _bound(request: Any) -> None:
    """Of either form: they name their fields alike."""
    groups = request.resource_spans
    if sum(1 + sum(1 + len(scope.spans) for scope in group.scope_spans) for group in groups) > MAX_SPANS:
        raise NotOtlpError("TooManySpans")


def _time(stated: int | str) -> int:
    """A moment that has a form on the wire: one that has none would lose all that is exported with it."""
    if not 0 <= (moment := int(stated)) < _MAX_TIME:
        raise NotOtlpError("TimeOutOfRange")
    return moment


def _kind(kind: int | str) -> Kind:
    if isinstance(kind, str):
        return _KIND_NAMES.get(kind, "internal")
    return KINDS[kind - 1] if 1 <= kind <= len(KINDS) else "internal"


def _source(scope: str, resource: dict[str, Any]) -> Source:
    return Source(
        service=str(resource.get("service.name", "")),
        version=str(resource.get("service.version", "")),
        scope=scope,
    )


def _values(pairs: Iterable[_KeyValue]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        whole = None if value.int_value is None else int(value.int_value)
        for one in (value.string_value, value.bool_value, whole, value.double_value):
            if one is not None:
                found[pair.key] = one
    return found


def _messages(pairs: Any) -> dict[str, Any]:
    kinds = ("string_value", "bool_value", "int_value", "double_value")
    return {
        pair.key: getattr(pair.value, kind)
        for pair in pairs
        if (kind := pair.value.WhichOneof("value")) in kinds
    }
