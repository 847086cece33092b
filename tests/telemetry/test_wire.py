"""How many messages a protobuf body unfolds to, whatever it is made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from custodes.telemetry.wire import unfolds_beyond

KIND = ExportTraceServiceRequest.DESCRIPTOR


def request(groups: int, spans: int, attributes: int) -> ExportTraceServiceRequest:
    made = ExportTraceServiceRequest()
    for _ in range(groups):
        scope = made.resource_spans.add().scope_spans.add()
        for number in range(spans):
            span = scope.spans.add(name="x" * 300, start_time_unix_nano=2**62, flags=1)
            for name in range(attributes):
                span.attributes.add(key=f"{number}.{name}").value.double_value = 0.5
    return made


@given(st.integers(0, 3), st.integers(0, 4), st.integers(0, 3))
def test_every_message_is_counted_at_its_depth(groups: int, spans: int, attributes: int) -> None:
    body = request(groups, spans, attributes).SerializeToString()
    messages = groups * (2 + spans * (1 + attributes * 2))
    assert not unfolds_beyond(messages, body, KIND)
    assert messages == 0 or unfolds_beyond(messages - 1, body, KIND)


def test_what_a_field_of_text_holds_is_no_message() -> None:
    made = ExportTraceServiceRequest()
    made.resource_spans.add(schema_url="\n\0" * 1_000)
    assert not unfolds_beyond(1, made.SerializeToString(), KIND)


def test_messages_between_the_tags_of_a_group_and_before_a_break_are_counted() -> None:
    groups = b"\x0a\x00" * 10
    assert unfolds_beyond(9, b"\x7b" + groups + b"\x7c", KIND)
    assert unfolds_beyond(9, groups + b"\x0f\xff\xff", KIND)


@given(st.binary(max_size=200))
def test_any_bytes_come_to_an_answer(body: bytes) -> None:
    beyond = [unfolds_beyond(most, body, KIND) for most in (0, 1, 2, 5, len(body))]
    assert beyond == sorted(beyond, reverse=True)
    assert not beyond[-1]
