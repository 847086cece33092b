"""What a runtime sends as its spans, spoiled: a tree under the call, or a refusal; never a lost attempt."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import partial

import anyio
import anyio.from_thread
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from custodes.telemetry.graft import Graft
from custodes.telemetry.otlp import MAX_SPANS, NotOtlpError, read_json, read_protobuf, write_json
from custodes.telemetry.relay import Relay
from custodes.telemetry.span_record import Source, SpanRecord
from support.fuzz import bent_lines, cut, spoiled, tried

TRACE, CALL = "a" * 32, "b" * 16
WANTED = {"chat m": "chat", "step": ""}
RECORDS = [
    SpanRecord(
        trace="c" * 32,
        id=f"{number:016x}",
        parent=f"{number - 1:016x}" if number else "",
        name=name,
        begun=number,
        ended=number + 5,
        attributes={"gen_ai.request.model": "m", "n": 3, "b": True, "f": 0.5},
        error=number == 2,
        source=Source("service", "1.0", "scope"),
    )
    for number, name in enumerate(("root", "step", "chat m", "noise"))
]
JSON = write_json(RECORDS)


def protobuf(records: list[SpanRecord]) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "service"
    scope = group.scope_spans.add()
    scope.scope.name = "scope"
    for record in records:
        span = scope.spans.add(
            trace_id=bytes.fromhex(record.trace),
            span_id=bytes.fromhex(record.id),
            parent_span_id=bytes.fromhex(record.parent),
            name=record.name,
            start_time_unix_nano=record.begun,
            end_time_unix_nano=record.ended,
        )
        span.attributes.add(key="gen_ai.request.model").value.string_value = "m"
    return request


PROTOBUF = protobuf(RECORDS).SerializeToString()


def grafted(records: list[SpanRecord]) -> list[SpanRecord]:
    graft = Graft(TRACE, CALL, WANTED)
    return [*graft.take(records), *graft.finish()]


def holds(spans: list[SpanRecord]) -> None:
    """One tree under the call, of names and ids that are ours, that an exporter can write."""
    ids = {span.id for span in spans}
    assert len(ids) == len(spans)
    for span in spans:
        assert span.trace == TRACE
        assert re.fullmatch("[0-9a-f]{16}", span.id)
        assert span.parent == CALL or span.parent in ids
        assert 0 <= span.begun <= span.ended < 2**63
    write_json(spans).decode()


@given(bent_lines([JSON]) | spoiled([JSON]))
@tried(150)
def test_spoiled_json_is_a_tree_under_the_call_or_refused(body: bytes) -> None:
    try:
        found = read_json(body)
    except NotOtlpError:
        return
    holds(grafted(found))


@given(spoiled([PROTOBUF], [b"\x0a\x00", b"\xff" * 10, b"\x08\x96\x01", b"\x0a\xff\xff\xff\xff\x0f"]))
@tried(150)
def test_spoiled_protobuf_is_a_tree_under_the_call_or_refused(body: bytes) -> None:
    try:
        found = read_protobuf(body)
    except NotOtlpError:
        return
    holds(grafted(found))


def test_a_resource_of_many_attributes_is_read_once_and_not_for_each_of_its_spans() -> None:
    """Read for each, this one body would take minutes."""
    spans = MAX_SPANS - 2  # the resource and its scope count, too
    request = protobuf([RECORDS[0]] * spans)
    for number in range(20_000):
        request.resource_spans[0].resource.attributes.add(key=f"k{number}").value.int_value = number
    assert len(read_protobuf(request.SerializeToString())) == spans


def test_a_long_chain_of_spans_that_are_left_out_is_climbed_once() -> None:
    """Climbed for each of the spans below it, it would take minutes."""
    chain = [
        SpanRecord(
            trace="c", id=f"{n:x}", parent=f"{n - 1:x}" if n > 1 else "", name="noise", begun=1, ended=2
        )
        for n in range(1, 50_000)
    ]
    below = [
        SpanRecord(trace="c", id=f"f{n:x}", parent=f"{49_999:x}", name="step", begun=1, ended=2)
        for n in range(100_000, 101_000)
    ]
    found = grafted([*chain, *below])
    assert {span.parent for span in found} == {CALL}
    assert len(found) == 1_000


# -- Over a real socket


class Runtime:
    """A relay in this process, spoken to from outside its loop."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, relay: Relay) -> None:
        self.call = portal.call
        self.relay = relay
        self.port = int(relay.url.split(":")[2].partition("/")[0])
        self.path = "/" + relay.url.rpartition("/")[2] + "/v1/traces"

    async def say(self, pieces: list[bytes], half: bool) -> None:
        """Say this, and go; where ``half``, say that it is all, and hear the relay to its end."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            try:
                for piece in pieces:
                    await stream.send(piece)
                if half:
                    await stream.send_eof()
                    with anyio.fail_after(60):
                        while True:
                            await stream.receive()
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                return

    async def post(self) -> int:
        async with httpx2.AsyncClient() as client:
            url = f"{self.relay.url}/v1/traces"
            headers = {"content-type": "application/json"}
            return (await client.post(url, content=JSON, headers=headers, timeout=30)).status_code


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    taken: list[SpanRecord] = []
    relay = Relay(Graft(TRACE, CALL, WANTED), taken.extend)
    with anyio.from_thread.start_blocking_portal() as portal:
        assert portal.call(relay.open)
        with portal.wrap_async_context_manager(relay.serving()):
            yield Runtime(portal, relay)
    holds(taken)


def requests(path: str) -> list[bytes]:
    post = f"POST {path} HTTP/1.1\r\nhost: x\r\n".encode()
    sized = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(JSON)
    packed = gzip.compress(PROTOBUF)
    return [
        post + sized + JSON,
        post + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        post + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed,
        post + b"expect: 100-continue\r\ncontent-length: 3\r\n\r\nabc",
        b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ]


FLOOD = [b"x: y\r\n" * 4_000, b"content-length: 99999999999\r\n", b"content-length: -1\r\n", b"\0", b"\n\r\n"]
FLOOD += [b"transfer-encoding: gzip, chunked\r\n", b"ffffffff\r\n", b"content-encoding: br\r\n"]


@given(data=st.data(), places=st.lists(st.integers(0, 1 << 14), max_size=4), half=st.booleans())
@tried(60)
def test_whatever_is_said_to_it_the_next_batch_is_taken(
    runtime: Runtime, data: st.DataObject, places: list[int], half: bool
) -> None:
    said = data.draw(spoiled(requests(runtime.path), FLOOD) | st.sampled_from(requests(runtime.path)))
    runtime.call(runtime.say, cut(said, places), half)
    assert runtime.call(runtime.post) == 200


@pytest.mark.parametrize("lost", [1, 8, 40])
def test_a_packed_batch_that_was_cut_is_refused_and_not_half_taken(runtime: Runtime, lost: int) -> None:
    async def post() -> int:
        async with httpx2.AsyncClient() as client:
            url, packed = f"{runtime.relay.url}/v1/traces", gzip.compress(PROTOBUF)[:-lost]
            headers = {"content-encoding": "gzip"}
            return (await client.post(url, content=packed, headers=headers, timeout=30)).status_code

    assert runtime.call(partial(post)) == 400
