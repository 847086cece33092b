"""A provider on this machine: an OpenAI-compatible chat endpoint, a pool for each model, stdlib alone.

Its models are a few rules and no language model: they read the evidence in the prompt and answer from it.
What is real is the protocol: HTTP on 127.0.0.1, server-sent events, usage, and a quota that ends in a 429
with ``Retry-After``.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from custodes.cli.output import counted

_MARKER = "(data, not instructions):\n"
_SERIOUS = ("medium", "high", "critical")
_CHUNK = 24
_CHUNK_SECONDS = 0.03
_THINKING_SECONDS = 0.6


class Quota:
    """One pool: ``requests`` are served, the next one is refused and starts a wait of ``seconds``; after it
    as many are served again. None has no quota."""

    def __init__(self, requests: int | None, seconds: float) -> None:
        self._requests = requests
        self._seconds = seconds
        self._left = requests
        self._limited_until: float | None = None
        self._lock = threading.Lock()

    def take(self, now: float) -> float | None:
        """Take one request: None where it is served, else the seconds until one would be."""
        with self._lock:
            if self._limited_until is not None and now >= self._limited_until:
                self._limited_until, self._left = None, self._requests
            if self._left is None:
                return None
            if self._left > 0:
                self._left -= 1
                return None
            if self._limited_until is None:
                self._limited_until = now + self._seconds
            return self._limited_until - now


class Provider(ThreadingHTTPServer):
    """``served`` and ``limited`` count what reached each model."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, quotas: dict[str, Quota]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.quotas = quotas
        self.served = dict.fromkeys(quotas, 0)
        self.limited = dict.fromkeys(quotas, 0)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hung up is no news."""


@contextlib.contextmanager
def serving(quotas: dict[str, Quota]) -> Iterator[Provider]:
    """The provider, answering until the block is left."""
    with Provider(quotas) as provider:
        thread = threading.Thread(target=provider.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()


def answer(prompt: str) -> dict[str, Any]:
    """What the rules make of a prompt: a summary of the evidence in it, and what it leaves open."""
    _, _, evidence = prompt.partition(_MARKER)
    try:
        slices, _ = json.JSONDecoder().raw_decode(evidence)
    except ValueError:
        slices = {}
    if not slices:
        return {"summary": f"read {len(prompt.split())} words; no evidence was handed over"}
    findings = [finding for part in slices.values() for finding in part.get("findings", ())]
    serious = [finding for finding in findings if finding.get("severity") in _SERIOUS]
    told = sum(len(part.get("claims", ())) + len(part.get("open_items", ())) for part in slices.values())
    seen = [f"{counted(len(findings), 'finding')}, {len(serious)} of them serious"] if findings else []
    seen += [f"{counted(told, 'point')} noted"] if told else []
    return {
        "summary": f"from {' and '.join(slices)}: {' and '.join(seen) or 'nothing stands out'}",
        "open_items": [f"{finding['place']}: {finding['message']}" for finding in serious],
    }


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's word
        """The run's own tree says it."""

    def do_GET(self) -> None:
        self._json(
            200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.quotas]}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        model = str(body.get("model"))
        quota = self.server.quotas.get(model)
        if quota is None:
            error = {"message": f"The model '{model}' does not exist", "type": "invalid_request_error"}
            self._json(404, {"error": {**error, "code": "model_not_found"}})
            return
        wait = quota.take(time.monotonic())
        if wait is not None:
            self.server.limited[model] += 1
            error = {"message": "Rate limit reached for requests", "type": "requests"}
            headers = {"Retry-After": str(math.ceil(wait))}
            self._json(429, {"error": {**error, "code": "rate_limit_exceeded"}}, headers)
            return
        self.server.served[model] += 1
        prompt = "\n".join(str(message.get("content", "")) for message in body["messages"])
        self._stream(model, prompt, json.dumps(answer(prompt)))

    def _stream(self, model: str, prompt: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        time.sleep(_THINKING_SECONDS)
        for start in range(0, len(text), _CHUNK):
            self._chunk(
                model,
                [{"index": 0, "delta": {"content": text[start : start + _CHUNK]}, "finish_reason": None}],
            )
            time.sleep(_CHUNK_SECONDS)
        self._chunk(model, [{"index": 0, "delta": {}, "finish_reason": "stop"}])
        tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        self._chunk(model, [], usage={**tokens, "total_tokens": sum(tokens.values())})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _chunk(self, model: str, choices: list[dict[str, Any]], **more: Any) -> None:
        chunk = {
            "id": "chatcmpl-demo",
            "object": "chat.completion.chunk",
            "model": model,
            "choices": choices,
            **more,
        }
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def _json(self, status: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
