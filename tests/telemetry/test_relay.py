"""The collector of one attempt: what a real exporter, a rude one and a stranger come to with it."""

from __future__ import annotations

import gzip
import json
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import httpx2
import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from custodes.telemetry import relay as module
from custodes.telemetry.graft import Graft
from custodes.telemetry.otlp import write_json
from custodes.telemetry.relay import Relay
from custodes.telemetry.span_record import SpanRecord

pytestmark = pytest.mark.anyio

TRACE, CALL = "a" * 32, "b" * 16
BODY = write_json([SpanRecord(trace="c" * 32, id="d" * 16, name="step", begun=1, ended=2)])
JSON = {"content-type": "application/json"}


class Taken(list[SpanRecord]):
    def relay(self) -> Relay:
        return Relay(Graft(TRACE, CALL, {"step": ""}), self.extend)


@asynccontextmanager
async def served(relay: Relay) -> AsyncIterator[None]:
    assert await relay.open()
    async with relay.serving():
        yield


@pytest.fixture
def taken(anyio_backend: str) -> Taken:
    return Taken()


def export(url: str, compression: Compression) -> None:
    """As a runtime does it: with the SDK, in protobuf."""
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{url}/v1/traces", compression=compression)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("runtime")
    with tracer.start_as_current_span("root"), tracer.start_as_current_span("step") as step:
        step.set_attribute("gen_ai.input.messages", "canary")
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_what_a_real_exporter_sends_hangs_under_the_call(
    taken: Taken, compression: Compression
) -> None:
    relay = taken.relay()
    async with served(relay):
        await anyio.to_thread.run_sync(export, relay.url, compression)
        # Passed on while the runtime is still at work, not held to its end.
        assert [span.name for span in taken] == ["step", "runtime"]
    assert {span.trace for span in taken} == {TRACE}
    assert taken[1].parent == CALL
    assert taken[0].parent == taken[1].id
    assert "canary" not in repr(taken)


async def test_json_is_taken_in_pieces_and_on_one_connection(taken: Taken) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(BODY), 7):
            yield BODY[at : at + 7]

    relay = taken.relay()
    async with served(relay), httpx2.AsyncClient() as client:
        for path in ("/v1/logs", "/v1/metrics", "/v1/traces"):
            answer = await client.post(f"{relay.url}{path}", content=pieces(), headers=JSON)
            assert (answer.status_code, answer.json()) == (200, {})
    assert [span.parent for span in taken] == [CALL]


@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        ("/v1/traces", b"{", JSON, 400),
        ("/v1/traces", b"\xff\xff", {}, 400),
        ("/v1/traces", BODY, JSON | {"content-encoding": "gzip"}, 400),
        ("/v1/traces", BODY, JSON | {"content-encoding": "br"}, 415),
        ("/v1/spans", BODY, JSON, 404),
        ("/../v1/traces", BODY, JSON, 404),
    ],
)
async def test_what_cannot_be_taken_is_told_and_the_next_is_taken(
    taken: Taken, path: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    relay = taken.relay()
    async with served(relay), httpx2.AsyncClient() as client:
        answer = await client.post(f"{relay.url}{path}", content=content, headers=headers)
        assert answer.status_code == status
        assert (await client.post(f"{relay.url}/v1/traces", content=BODY, headers=JSON)).status_code == 200
    assert len(taken) == 1


async def test_who_does_not_know_the_word_hangs_nothing_into_the_trace(taken: Taken) -> None:
    relay = taken.relay()
    async with served(relay), httpx2.AsyncClient() as client:
        stranger = relay.url.rpartition("/")[0]
        for path in ("/v1/traces", "/x/v1/traces", "//v1/traces"):
            answer = await client.post(f"{stranger}{path}", content=BODY, headers=JSON)
            assert answer.status_code == 404
    assert taken == []


@pytest.mark.parametrize("packed", [False, True])
async def test_no_request_takes_more_memory_than_the_bound(
    taken: Taken, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BODY", 10_000)
    body = json.dumps({"x": " " * 1_000_000}).encode()
    headers = JSON | ({"content-encoding": "gzip"} if packed else {})
    relay = taken.relay()
    async with served(relay), httpx2.AsyncClient() as client:
        with anyio.fail_after(30):
            try:
                answer = await client.post(
                    f"{relay.url}/v1/traces", content=gzip.compress(body) if packed else body, headers=headers
                )
            except httpx2.TransportError:
                return  # it was cut off while it was still sending
        assert answer.status_code == 413


async def test_a_connection_that_breaks_off_or_speaks_no_http_disturbs_nobody(taken: Taken) -> None:
    relay = taken.relay()
    async with served(relay), httpx2.AsyncClient() as client:
        port = int(relay.url.split(":")[2].partition("/")[0])
        for said in (b"\x16\x03\x01", b"POST / HTTP/1.1\r\n", b"GET " + b"x" * 200_000):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(said)
        assert (await client.post(f"{relay.url}/v1/traces", content=BODY, headers=JSON)).status_code == 200
    assert len(taken) == 1


async def test_a_runtime_that_keeps_its_connection_open_does_not_hold_the_end(taken: Taken) -> None:
    relay = taken.relay()
    with anyio.fail_after(30):
        async with served(relay):
            port = int(relay.url.split(":")[2].partition("/")[0])
            stream = await anyio.connect_tcp("127.0.0.1", port)
            await stream.send(b"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n")
    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
        await stream.receive()
    await stream.aclose()


async def test_what_the_block_raises_passes_as_it_is_and_a_cancel_goes_on(taken: Taken) -> None:
    with pytest.raises(ValueError, match="as it is"):
        async with served(taken.relay()):
            raise ValueError("as it is")
    orphan = SpanRecord(trace="c" * 32, id="d" * 16, parent="e" * 16, name="step", begun=1, ended=2)
    with anyio.CancelScope() as scope:
        relay = taken.relay()
        async with served(relay), httpx2.AsyncClient() as client:
            await client.post(f"{relay.url}/v1/traces", content=write_json([orphan]), headers=JSON)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert taken[0].parent == taken[1].id  # its parent never came, and is stood in for all the same
    assert taken[1].parent == CALL


async def test_without_a_port_there_is_no_relay_and_it_is_said(
    taken: Taken, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    relay = taken.relay()
    with socket.socket() as one:  # every descriptor above it is refused
        resource.setrlimit(resource.RLIMIT_NOFILE, (one.fileno(), hard))
        try:
            assert not await relay.open()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "Too many open files" in caplog.text
