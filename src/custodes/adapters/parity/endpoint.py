"""A model endpoint on loopback that answers as a case wants it, for adapters that speak HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from custodes.adapters.parity.stage import Stage


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. ``body`` None: it takes the request and never says a word."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes | None = b""


def whole(status: int, document: object, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON document."""
    said = {"content-type": "application/json", **(headers or {})}
    return Reply(status=status, headers=said, body=json.dumps(document).encode())


def events(*data: object) -> Reply:
    """A stream of server-sent events, each a JSON value or a plain word."""
    lines = (each if isinstance(each, str) else json.dumps(each) for each in data)
    body = "".join(f"data: {line}\n\n" for line in lines).encode()
    return Reply(headers={"content-type": "text/event-stream"}, body=body)


@contextmanager
def endpoint(stage: Stage, reply: Reply) -> Iterator[str]:
    """Its address, without a path. Each request is noted as heard; the stage's noise goes round the body."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers.get("content-length") or 0))
            stage.hears(f"{self.path}\n{self.headers}\n{asked.decode('utf-8', 'replace')}")
            if reply.body is None:
                over.wait()
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            before, after = (self.noise(size) for size in stage.noise)
            try:
                for part in (before, (reply.body,), after):
                    for piece in part:
                        self.wfile.write(piece)
            except OSError:
                pass  # it had heard enough

        def noise(self, size: int) -> Iterator[bytes]:
            """What means nothing round a body: comments in a stream, blanks round a document."""
            streams = "event-stream" in reply.headers.get("content-type", "")
            piece = b": " + b"noise " * 170 + b"\n\n" if streams else b" " * 1024
            return (piece for _ in range(size // len(piece)))

        do_GET = do_POST  # noqa: N815 - the server's own names

        def log_message(self, *said: object) -> None:
            """Nothing is printed: what was asked is heard by the stage."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
