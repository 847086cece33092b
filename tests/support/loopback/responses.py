"""OpenAI's Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from support.loopback.answers import OUTSIDE
from support.loopback.protocol import MODEL, Body, Call, event, halves

_CALL_ID = "call_loopback01"


class Responses:
    name = "responses"

    def speaks(self, path: str) -> bool:
        return path.endswith("/responses")

    def streams(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def model(self, path: str, body: Body) -> str:
        return str(body.get("model") or MODEL)

    def tools(self, body: Body) -> list[tuple[str, Body]]:
        found = [(str(tool.get("name") or tool.get("type")), tool) for tool in _declared(body)]
        return [
            (name, _SCRIPT if _takes_script(tool) else tool.get("parameters") or {}) for name, tool in found
        ]

    def answered(self, body: Body) -> bool:
        return _CALL_ID in json.dumps(body)

    def schema(self, body: Body) -> Body | None:
        text = body.get("text")
        wanted = text.get("format") if isinstance(text, dict) else None
        found: Body | None = (wanted or {}).get("schema")
        return found

    def events(self, model: str, text: str, call: Call | None) -> list[bytes]:
        done = self.whole(model, text, call)
        item = done["output"][0]
        begun = {**done, "status": "in_progress", "output": [], "usage": None}
        head = [_event("response.created", response=begun)]
        at = {"output_index": 0}
        if call:
            head.append(_event("response.output_item.added", **at, item={**item, "status": "in_progress"}))
        else:
            at_text = {**at, "item_id": item["id"], "content_index": 0}
            empty = {"type": "output_text", "text": "", "annotations": []}
            opened = {**item, "status": "in_progress", "content": []}
            head += [
                _event("response.output_item.added", **at, item=opened),
                _event("response.content_part.added", **at_text, part=empty),
                *(_event("response.output_text.delta", **at_text, delta=part) for part in halves(text)),
                _event("response.output_text.done", **at_text, text=text),
            ]
        return [
            *head,
            _event("response.output_item.done", **at, item=item),
            _event("response.completed", response=done),
        ]

    def whole(self, model: str, text: str, call: Call | None) -> Body:
        if call and call[0] == "exec":
            outside = {name: call[1][name] for name in OUTSIDE if name in call[1]}
            command = json.dumps({"cmd": call[1]["command"], "yield_time_ms": 60_000, **outside})
            item: Body = {"type": "custom_tool_call", "id": "ctc_loopback01", "call_id": _CALL_ID}
            item |= {"name": call[0], "input": f"text(await tools.exec_command({command}))"}
            item |= {"namespace": "functions", "status": "completed"}
        elif call:
            item = {"type": "function_call", "id": "fc_loopback01", "call_id": _CALL_ID}
            item |= {"name": call[0], "arguments": json.dumps(call[1]), "status": "completed"}
        else:
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "id": "msg_loopback01", "role": "assistant"}
            item |= {"status": "completed", "content": content}
        usage = {"input_tokens": 11, "output_tokens": 5, "total_tokens": 16}
        details = {
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {
            "id": "resp_loopback01",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": model,
            "output": [item],
            "usage": {**usage, **details},
        }

    def broken(self, model: str, text: str) -> list[bytes]:
        error = {
            "code": "server_is_overloaded",
            "message": "The server is overloaded. Please try again later.",
        }
        response: Body = {"id": "resp_loopback01", "status": "failed", "error": error, "output": []}
        return [self.events(model, text, None)[0], _event("response.failed", response=response)]

    def error(self, status: int, kind: str, message: str, more: Mapping[str, Any]) -> Body:
        return openai_error(kind, message, more)


def _declared(body: Body) -> Iterator[Body]:
    """The tools of a request: in their own field, or in an item of the input, grouped into namespaces."""
    groups = [body.get("tools"), *(item.get("tools") for item in body.get("input") or () if "tools" in item)]
    for tool in (tool for group in groups for tool in group or ()):
        yield from tool["tools"] if tool.get("type") == "namespace" else (tool,)


def _takes_script(tool: Body) -> bool:
    """A tool whose input is a script that calls the others."""
    return tool.get("type") == "custom" and tool.get("name") == "exec"


_SCRIPT: Body = {
    "properties": {"command": {"type": "string"}, **{name: {"type": "string"} for name in OUTSIDE}}
}


def openai_error(kind: str, message: str, more: Mapping[str, Any]) -> Body:
    return {"error": {"message": message, "type": kind, "param": None, "code": kind, **more}}


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, "sequence_number": 0, **data}, kind)
