"""A provider on loopback that is only asked how it is: each answer as the test says, each question noted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class HealthProvider:
    """``status`` is the next answer's, 0: none comes, the connection stays open; ``headers`` go with it.
    ``asked`` has each question as its method, path and headers."""

    models: Sequence[str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None
    _port: int = 0

    def listen(self) -> None:
        """Take questions, always at the same address."""
        server = _Server(("127.0.0.1", self._port), type("_Handler", (_Handler,), {"provider": self}))
        self._port = server.server_address[1]
        self.url = f"http://127.0.0.1:{self._port}/v1/models"
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def refuse(self) -> None:
        """Nobody listens any more."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = self._thread = None

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.asked]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up while it waits is what a timeout looks like from here."""


class _Handler(BaseHTTPRequestHandler):
    provider: HealthProvider

    def answer(self) -> None:
        provider = self.provider
        self.rfile.read(int(self.headers.get("content-length") or 0))
        provider.asked.append((self.command, self.path, dict(self.headers.items())))
        if provider.status == 0:
            provider.over.wait(60)
            return
        body = provider.body
        if body is None:
            body = {"object": "list", "data": [{"id": model, "object": "model"} for model in provider.models]}
        sent = json.dumps(body).encode()
        self.send_response(provider.status)
        for name, value in {"content-type": "application/json", **provider.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = answer  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
        """Nothing is printed."""


@contextmanager
def health_provider(*models: str) -> Iterator[HealthProvider]:
    """One that lists these models, on a free port; gone with the block."""
    provider = HealthProvider(models)
    provider.listen()
    try:
        yield provider
    finally:
        provider.over.set()
        provider.refuse()
