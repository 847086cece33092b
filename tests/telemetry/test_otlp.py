"""OTLP's two forms of spans, against the official messages."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]  # it has no stubs of its own
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from custodes.telemetry.otlp import (
    MAX_MESSAGES,
    MAX_SPANS,
    NotOtlpError,
    read_json,
    read_protobuf,
    write_json,
)
from custodes.telemetry.span_record import Source, SpanRecord

SPANS = [
    SpanRecord(
        trace="0a" * 16,
        id="0b" * 8,
        name="invoke_agent reviewer",
        kind="client",
        begun=1_796_040_000_000_000_001,
        ended=1_796_040_000_000_000_009,
        attributes={"a": "text", "b": True, "c": 2**62, "d": 0.5},
        error=True,
        source=Source("custodes", "1.0", "lib"),
    ),
    SpanRecord(
        trace="0a" * 16, id="0c" * 8, parent="0b" * 8, name="step", begun=3, ended=4, source=Source("other")
    ),
]


def official(body: bytes) -> ExportTraceServiceRequest:
    """By protobuf's own JSON parser, which wants ids in its own spelling."""
    document = json.loads(body)
    for group in document["resourceSpans"]:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(document, ExportTraceServiceRequest())  # type: ignore[no-any-return]  # as above


def test_what_is_written_is_read_as_it_was_and_the_official_parser_takes_every_field() -> None:
    body = write_json(SPANS)
    assert read_json(body) == SPANS
    assert read_protobuf(official(body).SerializeToString()) == SPANS


def test_events_links_nested_values_and_the_text_of_a_status_are_never_looked_at() -> None:
    document = json.loads(write_json(SPANS[:1]))
    (span,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    span["events"] = [{"name": "canary", "attributes": [{"key": "x", "value": {"stringValue": "canary"}}]}]
    span["links"] = [{"traceId": "00", "spanId": "00", "attributes": [{"key": "canary"}]}]
    span["status"]["message"] = "canary"
    deep = {"kvlistValue": {"values": [{"key": "x", "value": {"stringValue": "canary"}}]}}
    span["attributes"].append({"key": "nested", "value": deep})
    assert read_json(json.dumps(document).encode()) == SPANS[:1]


def test_numbers_and_enums_may_be_spelled_either_way() -> None:
    document = json.loads(write_json(SPANS[:1]))
    (span,) = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    span["kind"], span["status"]["code"] = "SPAN_KIND_CLIENT", "STATUS_CODE_ERROR"
    span["startTimeUnixNano"] = int(span["startTimeUnixNano"])
    assert read_json(json.dumps(document).encode()) == SPANS[:1]


_TIMED = (
    b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a","spanId":"b","endTimeUnixNano":"soon"}]}]}]}'
)
BAD: list[Any] = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"null",
    b'{"resourceSpans": 1}',
    b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "no ids"}]}]}]}',
    _TIMED,
    b"[" * 100_000,
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
def test_what_is_no_request_is_told_without_a_word_of_it(body: bytes) -> None:
    with pytest.raises(NotOtlpError) as raised:
        read_json(body)
    assert str(raised.value).isidentifier()


@pytest.mark.parametrize("moment", [-1, 2**63, "9" * 30])
def test_a_time_that_has_no_form_on_the_wire_is_refused(moment: int | str) -> None:
    """Passed on, it would lose every span that is exported with it: ours, too."""
    span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "startTimeUnixNano": moment, "endTimeUnixNano": "2"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    with pytest.raises(NotOtlpError):
        read_json(body)


def test_a_request_of_spans_without_number_is_refused_in_both_forms() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for _ in range(MAX_SPANS + 1):
        spans.add()
    with pytest.raises(NotOtlpError):
        read_protobuf(request.SerializeToString())
    many = [{"traceId": "", "spanId": ""}] * (MAX_SPANS + 1)
    with pytest.raises(NotOtlpError):
        read_json(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": many}]}]}).encode())


def test_what_unfolds_to_messages_without_number_is_refused_before_it_is_made() -> None:
    """One empty group takes two bytes on the wire, or three as JSON, and packs to next to nothing."""
    with pytest.raises(NotOtlpError, match="TooManyMessages"):
        read_protobuf(b"\x0a\x00" * (MAX_MESSAGES + 1))
    groups = b",".join([b"{}"] * (MAX_MESSAGES + 1))
    with pytest.raises(NotOtlpError, match="TooManyMessages"):
        read_json(b'{"resourceSpans":[' + groups + b"]}")


def test_empty_groups_are_bounded_as_spans_are() -> None:
    with pytest.raises(NotOtlpError, match="TooManySpans"):
        read_protobuf(b"\x0a\x00" * (MAX_SPANS + 1))
    with pytest.raises(NotOtlpError, match="TooManySpans"):
        read_json(b'{"resourceSpans":[' + b",".join([b"{}"] * (MAX_SPANS + 1)) + b"]}")


def test_bytes_that_are_no_message_are_told() -> None:
    with pytest.raises(NotOtlpError):
        read_protobuf(b"\xff\xff\xff\xff")
    assert read_protobuf(b"") == []
