"""OpenAI's Chat Completions, and whatever speaks in its shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.loopback.protocol import MODEL, Body, Call, event, halves
from support.loopback.responses import openai_error

_CALL_ID = "call_loopback01"
_USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 5,
    "total_tokens": 16,
    "prompt_tokens_details": {"cached_tokens": 3},
}


class Chat:
    name = "chat"

    def speaks(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Body) -> str:
        return str(body.get("model") or MODEL)

    def tools(self, body: Body) -> list[tuple[str, Body]]:
        functions = [tool.get("function") or {} for tool in body.get("tools") or ()]
        return [(str(each.get("name")), each.get("parameters") or {}) for each in functions]

    def answered(self, body: Body) -> bool:
        return _CALL_ID in json.dumps(body)

    def schema(self, body: Body) -> Body | None:
        wanted = (body.get("response_format") or {}).get("json_schema") or {}
        found: Body | None = wanted.get("schema")
        return found

    def events(self, model: str, text: str, call: Call | None) -> list[bytes]:
        head = {"id": "chatcmpl-loopback01", "object": "chat.completion.chunk", "created": 1, "model": model}

        def chunk(delta: Body, finish: str | None = None) -> bytes:
            return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        if call:
            name = {"name": call[0], "arguments": ""}
            opened = {"index": 0, "id": _CALL_ID, "type": "function", "function": name}
            arguments = {"index": 0, "function": {"arguments": json.dumps(call[1])}}
            pieces = [
                chunk({"role": "assistant", "content": None, "tool_calls": [opened]}),
                chunk({"tool_calls": [arguments]}),
                chunk({}, "tool_calls"),
            ]
        else:
            parts = [chunk({"content": part}) for part in halves(text)]
            pieces = [chunk({"role": "assistant", "content": ""}), *parts, chunk({}, "stop")]
        return [*pieces, event({**head, "choices": [], "usage": _USAGE}), b"data: [DONE]\n\n"]

    def whole(self, model: str, text: str, call: Call | None) -> Body:
        message: Body = {"role": "assistant", "content": None if call else text}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"id": _CALL_ID, "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
        head = {"id": "chatcmpl-loopback01", "object": "chat.completion", "created": 1, "model": model}
        return {**head, "choices": [choice], "usage": _USAGE}

    def broken(self, model: str, text: str) -> list[bytes]:
        said = {"error": {"message": "Overloaded", "type": "overloaded_error", "code": 529}}
        return [*self.events(model, text, None)[:2], event(said)]

    def error(self, status: int, kind: str, message: str, more: Mapping[str, Any]) -> Body:
        return openai_error(kind, message, more)
