"""A collector on loopback for one attempt: it takes what its runtime sends, and passes on the spans of it.

It answers at once, whatever becomes of the spans: a runtime never waits for our collector. Its address holds
a word that nobody can guess, so that no other program of this machine hangs spans into our trace.
"""

from __future__ import annotations

import logging
import secrets
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import h11
from anyio.abc import SocketAttribute, SocketStream

from custodes.telemetry.graft import Graft
from custodes.telemetry.otlp import NotOtlpError, read_json, read_protobuf
from custodes.telemetry.span_record import SpanRecord

logger = logging.getLogger("custodes.telemetry")

MAX_BODY = 8 * 1024 * 1024
"""Bytes of one request, also once it is unpacked. A batch of 512 spans with whole prompts has some 300 KB."""
MAX_TOTAL = 256 * 1024 * 1024
"""Bytes of one attempt."""
MAX_CONNECTIONS = 8
LAST_S = 0.5
"""How long what has arrived may be worked on once the runtime has ended, in seconds."""
_CHUNK = 64 * 1024
_REFUSED = {400: "no OTLP", 404: "no such path", 413: "too large", 415: "no such encoding"}

Emit = Callable[[Iterable[SpanRecord]], None]


class Relay:
    """``url`` is the base address that a runtime is told; ``graft`` says what was passed on."""

    def __init__(self, graft: Graft, emit: Emit) -> None:
        self.graft = graft
        self.url = ""
        self._emit = emit
        self._word = secrets.token_urlsafe(16)
        self._taken = 0
        self._one = anyio.Lock()
        self._open = anyio.CapacityLimiter(MAX_CONNECTIONS)
        self._busy = 0
        self._idle = anyio.Event()

    async def open(self) -> bool:
        """Take a port; False where there is none to be had: a runtime then goes without us. Follow it with
        ``serving``, which closes it."""
        try:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        except OSError as error:
            logger.warning("a runtime's own spans are not taken in: %s", error.strerror or error)
            return False
        self._listener = listener
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - of a socket, not of a query
        self.url = f"http://127.0.0.1:{port}/{self._word}"
        return True

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Take spans while the block runs. Leaving it passes on what has arrived, within :data:`LAST_S`."""
        raised: Exception | None = None
        try:
            async with self._listener, anyio.create_task_group() as group:
                group.start_soon(self._listener.serve, self._connected)
                try:
                    yield
                except Exception as error:
                    raised = error  # passes as it is, not in the group's own
                finally:
                    with anyio.move_on_after(LAST_S, shield=True):
                        while self._busy:
                            self._idle = anyio.Event()
                            await self._idle.wait()
                    group.cancel_scope.cancel()
        finally:
            self._emit(self.graft.finish())
        if raised is not None:
            raise raised

    async def _connected(self, stream: SocketStream) -> None:
        async with stream:
            try:
                async with self._open:
                    await self._converse(stream)
            except Exception as error:  # whatever a runtime sends, its attempt goes on
                logger.debug("a runtime's telemetry broke off: %s", type(error).__name__)

    async def _converse(self, stream: SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            request = await _next(connection, stream)
            if not isinstance(request, h11.Request):
                return
            self._busy += 1
            try:
                status, json = await self._request(connection, stream, request)
                await _answer(connection, stream, status, json)
            finally:
                self._busy -= 1
                self._idle.set()
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()

    async def _request(
        self, connection: h11.Connection, stream: SocketStream, request: h11.Request
    ) -> tuple[int, bool]:
        """The status of its answer, and whether that is JSON."""
        headers = {name: value.decode("ascii", "replace").lower() for name, value in request.headers}
        encoding, json = headers.get(b"content-encoding", ""), "json" in headers.get(b"content-type", "")
        word, _, path = request.target.decode("ascii", "replace").removeprefix("/").partition("/")
        if word != self._word or path not in ("v1/traces", "v1/logs", "v1/metrics"):
            return 404, json
        body = bytearray()
        while not isinstance(event := await _next(connection, stream), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                return 400, json
            body += event.data
            if len(body) > MAX_BODY:
                return 413, json
        self._taken += len(body)
        if path != "v1/traces":
            return 200, json  # nothing of them is passed on
        if self._taken > MAX_TOTAL:
            return 413, json
        async with self._one:
            return await anyio.to_thread.run_sync(self._take, bytes(body), encoding, json), json

    def _take(self, body: bytes, encoding: str, json: bool) -> int:
        """In a thread: a large batch would hold up the host's loop."""
        try:
            if encoding == "gzip":
                body = _unpacked(body)
            elif encoding not in ("", "identity"):
                return 415
            spans = read_json(body) if json else read_protobuf(body)
        except (NotOtlpError, zlib.error):
            return 400
        except _TooLargeError:
            return 413
        except ImportError:
            return 415
        self._emit(self.graft.take(spans))
        return 200


class _TooLargeError(Exception):
    pass


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    found = unpacking.decompress(body, MAX_BODY)
    if unpacking.unconsumed_tail:
        raise _TooLargeError
    if not unpacking.eof:
        raise zlib.error("cut off")
    return found


async def _next(connection: h11.Connection, stream: SocketStream) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        if connection.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await stream.send(connection.send(go_on) or b"")
        try:
            connection.receive_data(await stream.receive(_CHUNK))
        except anyio.EndOfStream:
            connection.receive_data(b"")
    return event


async def _answer(connection: h11.Connection, stream: SocketStream, status: int, json: bool) -> None:
    body, kind = (b"{}", "application/json") if json else (b"", "application/x-protobuf")
    headers = [("content-length", str(len(body))), ("content-type", kind)]
    if status != 200:
        logger.debug("a runtime's telemetry was refused: %s", _REFUSED[status])
        headers.append(("connection", "close"))
    told = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    told += connection.send(h11.Data(data=body)) or b""
    await stream.send(told + (connection.send(h11.EndOfMessage()) or b""))
