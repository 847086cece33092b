"""Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.loopback.protocol import MODEL, REQUEST_ID, Body, Call, event, halves

_CALL_ID = "toolu_loopback01"


class Anthropic:
    name = "anthropic"

    def speaks(self, path: str) -> bool:
        return path.endswith("/messages")

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Body) -> str:
        return str(body.get("model") or MODEL)

    def tools(self, body: Body) -> list[tuple[str, Body]]:
        return [(str(tool.get("name")), tool.get("input_schema") or {}) for tool in body.get("tools") or ()]

    def answered(self, body: Body) -> bool:
        return _CALL_ID in json.dumps(body)

    def schema(self, body: Body) -> Body | None:
        wanted = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
        found: Body | None = wanted.get("schema")
        return found

    def events(self, model: str, text: str, call: Call | None) -> list[bytes]:
        message = {**self.whole(model, text, call), "content": [], "stop_reason": None}
        message["usage"] = {**message["usage"], "output_tokens": 1}
        if call:
            block: Body = {"type": "tool_use", "id": _CALL_ID, "name": call[0], "input": {}}
            pieces = [{"type": "input_json_delta", "partial_json": json.dumps(call[1])}]
        else:
            block = {"type": "text", "text": ""}
            pieces = [{"type": "text_delta", "text": part} for part in halves(text)]
        stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        return [
            _event("message_start", message=message),
            _event("content_block_start", index=0, content_block=block),
            *(_event("content_block_delta", index=0, delta=piece) for piece in pieces),
            _event("content_block_stop", index=0),
            _event("message_delta", delta=stop, usage={"output_tokens": 5}),
            _event("message_stop"),
        ]

    def whole(self, model: str, text: str, call: Call | None) -> Body:
        content: Body = {"type": "text", "text": text}
        if call:
            content = {"type": "tool_use", "id": _CALL_ID, "name": call[0], "input": call[1]}
        usage = {"input_tokens": 11, "output_tokens": 5}
        cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 3}
        return {
            "id": "msg_loopback01",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [content],
            "stop_reason": "tool_use" if call else "end_turn",
            "stop_sequence": None,
            "usage": {**usage, **cached},
        }

    def broken(self, model: str, text: str) -> list[bytes]:
        said = self.error(529, "overloaded_error", "Overloaded", {})
        return [*self.events(model, text, None)[:3], event(said, "error")]

    def error(self, status: int, kind: str, message: str, more: Mapping[str, Any]) -> Body:
        return {
            "type": "error",
            "error": {"type": kind, "message": message, **more},
            "request_id": REQUEST_ID,
        }


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)
