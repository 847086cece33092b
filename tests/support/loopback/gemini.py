"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from support.loopback.protocol import MODEL, Body, Call, event, halves


class Gemini:
    name = "gemini"

    def speaks(self, path: str) -> bool:
        return re.search(r":(?:streamG|g)enerateContent$", path) is not None

    def streams(self, path: str, body: Body) -> bool:
        return path.endswith(":streamGenerateContent")

    def model(self, path: str, body: Body) -> str:
        found = re.search(r"/models/([^:/]+):", path)
        return found[1] if found else MODEL

    def tools(self, body: Body) -> list[tuple[str, Body]]:
        declared = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations", ())]
        return [
            (str(each.get("name")), each.get("parametersJsonSchema") or each.get("parameters") or {})
            for each in declared
        ]

    def answered(self, body: Body) -> bool:
        return '"functionResponse"' in json.dumps(body)

    def schema(self, body: Body) -> Body | None:
        wanted = body.get("generationConfig") or {}
        found: Body | None = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        return found

    def events(self, model: str, text: str, call: Call | None) -> list[bytes]:
        if call:
            return [event(_answer(model, "", call, "STOP"))]
        first, second = halves(text)
        return [event(_answer(model, first, None, None)), event(_answer(model, second, None, "STOP"))]

    def whole(self, model: str, text: str, call: Call | None) -> Body:
        return _answer(model, text, call, "STOP")

    def broken(self, model: str, text: str) -> list[bytes]:
        said = self.error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", {})
        return [self.events(model, text, None)[0], event(said)]

    def error(self, status: int, kind: str, message: str, more: Mapping[str, Any]) -> Body:
        return {"error": {"code": status, "message": message, "status": kind, "details": [], **more}}


def _answer(model: str, text: str, call: Call | None, finish: str | None) -> Body:
    part: Body = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
    candidate: Body = {"content": {"role": "model", "parts": [part]}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}
    return {
        "candidates": [candidate],
        "usageMetadata": {**usage, "cachedContentTokenCount": 3},
        "modelVersion": model,
        "responseId": "loopback01",
    }
