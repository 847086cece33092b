"""A chat-completions provider on loopback that does what it is told: real sockets, real faults.

Each request takes the next `Reply` of the script; the last one repeats. `journal` holds what was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What to answer. ``send`` writes it; True keeps to the protocol, False cuts the connection after it."""

    send: Callable[[Handler], bool]


@dataclass
class Provider:
    """A running server. ``url`` is the base URL to configure."""

    script: list[Reply]
    journal: list[Asked] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    """A request came in."""
    released: threading.Event = field(default_factory=threading.Event)
    """The test is over: whoever keeps silent may go."""
    gone: threading.Event = field(default_factory=threading.Event)
    """A client hung up while it was written to."""
    url: str = ""

    def take(self, asked: Asked) -> Reply:
        self.journal.append(asked)
        self.arrived.set()
        return self.script[min(len(self.journal), len(self.script)) - 1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        asked = Asked(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(self.rfile.read(size)),
        )
        try:
            kept = self.provider.take(asked).send(self)
        except OSError:
            self.provider.gone.set()
            kept = False
        self.close_connection = not kept

    def log_message(self, *_: object) -> None:
        pass

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def status(code: int, body: object, headers: Mapping[str, str] | None = None) -> Reply:
    """A whole answer: an error, or a completion that was not streamed."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    def send(handler: Handler) -> bool:
        handler.head(
            code,
            {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})},
        )
        handler.wfile.write(raw)
        return True

    return Reply(send)


def error(
    code: int, message: str, kind: str = "", headers: Mapping[str, str] | None = None, **more: object
) -> Reply:
    """An error in the vendor's shape."""
    return status(code, {"error": {"message": message, "type": kind, "code": kind, **more}}, headers)


def event(data: object) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def delta(text: str | None = None, finish: str | None = None, **more: object) -> bytes:
    content = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**content, **more}, "finish_reason": finish}
    return event({"id": "c1", "model": "served-1", "choices": [choice]})


def stream(*events: bytes, end: bool = True, then: Callable[[Handler], None] | None = None) -> Reply:
    """Server-sent events in chunks; without ``end`` the connection breaks in the middle of the body."""

    def send(handler: Handler) -> bool:
        handler.head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for each in events:
            handler.chunk(each)
        if then is not None:
            then(handler)
        if end:
            handler.wfile.write(b"0\r\n\r\n")
        return end

    return Reply(send)


def answer(text: str, *, usage: bool = True, done: bool = True, finish: str = "stop") -> Reply:
    """A complete streamed answer in two pieces."""
    events = [delta("", role="assistant"), delta(text[:3]), delta(text[3:]), delta(None, finish)]
    if usage:
        events.append(event({"id": "c1", "model": "served-1", "choices": [], "usage": USAGE}))
    return stream(*events, *([event(b"[DONE]")] if done else []))


def plain(text: str, finish: str = "stop") -> Reply:
    """A completion as one JSON document, though a stream was asked for."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return status(200, {"id": "c1", "model": "served-1", "choices": [choice], "usage": USAGE})


def silence() -> Reply:
    """Takes the request and never says a word."""

    def send(handler: Handler) -> bool:
        handler.provider.released.wait()
        return False

    return Reply(send)


def slow_headers() -> Reply:
    """A status line, one header, and then nothing."""

    def send(handler: Handler) -> bool:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        handler.wfile.flush()
        handler.provider.released.wait()
        return False

    return Reply(send)


def trickle() -> Reply:
    """A word now and then, without end."""

    def go_on(handler: Handler) -> None:
        while not handler.provider.released.wait(0.01):
            handler.chunk(delta("word "))

    return stream(end=False, then=go_on)


def flood(piece: bytes) -> Reply:
    """The same bytes as fast as they are taken, without end."""

    def go_on(handler: Handler) -> None:
        while not handler.provider.released.is_set():
            handler.chunk(piece)

    return stream(end=False, then=go_on)


@contextmanager
def provider(*script: Reply) -> Iterator[Provider]:
    """A provider on a free loopback port; it ends with the block, silent connections included."""
    running = Provider(script=list(script))
    handler = type("_Handler", (Handler,), {"provider": running})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    running.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
