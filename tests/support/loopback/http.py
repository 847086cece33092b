"""The HTTP side of the loopback provider: reads any request, answers as its case says."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import time
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.loopback.answers import fitting, shell_call, structured_call
from support.loopback.anthropic import Anthropic
from support.loopback.chat import Chat
from support.loopback.faults import refusal
from support.loopback.gemini import Gemini
from support.loopback.protocol import MODEL, REQUEST_ID, Call, Wire
from support.loopback.provider import Asked, Provider
from support.loopback.responses import Responses

WIRES: tuple[Wire, ...] = (Anthropic(), Responses(), Chat(), Gemini())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = self._body()
        posted = self.command == "POST"  # a GET there is a client that tries a WebSocket
        wire = next((wire for wire in WIRES if posted and wire.speaks(path)), None)
        try:
            kept = self._complete(wire, path, body) if wire else self._other(path, body)
        except OSError:
            kept = False  # the client hung up
        self.close_connection = not kept

    # http.server's own names.
    do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass

    def _body(self) -> dict[str, Any]:
        raw = b""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        elif size := int(self.headers.get("content-length") or 0):
            raw = self.rfile.read(size)
        try:
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            found = json.loads(raw or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _note(self, wire: Wire | None, path: str, body: dict[str, Any], case: str, called: str) -> None:
        self.provider.note(
            Asked(
                at=round(time.monotonic() - self.provider.begun, 2),
                method=self.command,
                path=path,
                protocol=wire.name if wire else "",
                model=wire.model(path, body) if wire else "",
                case=case,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
                called=called,
            )
        )

    def _other(self, path: str, body: dict[str, Any]) -> bool:
        """What is no completion: a list of models, a count of tokens; nothing else is here."""
        self._note(None, path, body, "", "")
        if self.command == "GET" and path.rstrip("/").endswith("/models"):
            entry = {"id": MODEL, "object": "model", "created": 1, "owned_by": "loopback"}
            return self._whole(200, {"object": "list", "data": [entry], "models": []})
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._whole(200, {"input_tokens": 11, "totalTokens": 11})
        return self._whole(404, {"error": {"message": "there is no such route", "type": "not_found"}})

    def _complete(self, wire: Wire, path: str, body: dict[str, Any]) -> bool:
        case = self.provider.next_case()
        text, call = self._wanted(wire, body, case)
        self._note(wire, path, body, case, call[0] if call else "")
        if said := refusal(case, wire, time.time()):
            return self._send(said.status, said.headers, said.body)
        if case == "hang":
            self.provider.over.wait()
            return False
        if case == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return False
        if case == "html":
            page = b"<html><body><h1>Welcome</h1></body></html>"
            return self._send(200, {"content-type": "text/html"}, page)
        model = wire.model(path, body)
        if not wire.streams(path, body):
            return self._document(wire, case, wire.whole(model, text, call))
        return self._stream(case, wire, model, text, call)

    def _wanted(self, wire: Wire, body: dict[str, Any], case: str) -> tuple[str, Call | None]:
        """The text or the tool call of this answer."""
        call: Call | None = None
        if not wire.answered(body):
            tools = wire.tools(body)
            if case in ("tool", "ask"):
                call = shell_call(tools, self.provider.command, outside=case == "ask")
            else:
                call = structured_call(tools)
        schema = wire.schema(body)
        return json.dumps(fitting(schema)) if schema else self.provider.text, call

    def _stream(self, case: str, wire: Wire, model: str, text: str, call: Call | None) -> bool:
        if case == "malformed":
            broken = [b'event: message_start\ndata: {"type": "mess\n\n', b"data: {not JSON at all\n\n"]
            return self._events(broken)
        if case == "stream_error":
            return self._events(wire.broken(model, text))
        events = wire.events(model, text, call)
        half = events[: max(1, len(events) // 2)]
        if case == "cut_clean":
            return self._events(half)
        if case in ("cut", "stall"):
            self._events(half, end=False)
            if case == "stall":
                self.provider.over.wait()
            return False
        return self._events(events)

    def _document(self, wire: Wire, case: str, document: dict[str, Any]) -> bool:
        data = json.dumps(document).encode()
        if case in ("cut", "stall", "cut_clean", "malformed"):
            whole = {"cut": len(data), "stall": len(data)}.get(case, len(data) // 2)
            self._head(200, {"content-type": "application/json", "content-length": str(whole)})
            self.wfile.write(data[: len(data) // 2])
            if case == "stall":
                self.provider.over.wait()
            return False
        if case == "stream_error" and (said := refusal("overload", wire, time.time())):
            return self._send(said.status, said.headers, said.body)
        return self._send(200, {}, data)

    def _events(self, events: Iterable[bytes], *, end: bool = True) -> bool:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for each in events:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(each), each))
            self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")
        return end

    def _whole(self, status: int, document: object) -> bool:
        return self._send(status, {}, json.dumps(document).encode())

    def _send(self, status: int, headers: Mapping[str, str], data: bytes) -> bool:
        plain = {"content-type": "application/json", "content-length": str(len(data))}
        self._head(status, {**plain, **headers})
        self.wfile.write(data)
        return True

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status, None if status in self.responses else "Unknown")
        for name, value in {"request-id": REQUEST_ID, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
