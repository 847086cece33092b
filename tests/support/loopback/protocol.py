"""What the loopback provider needs of one vendor's wire protocol; a module each implements it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

Body = dict[str, Any]
Call = tuple[str, Body]
"""A tool call: the tool's name and its arguments."""

MODEL = "loopback-model"
REQUEST_ID = "req_loopback00000000000001"


class Wire(Protocol):
    """One protocol. ``text`` is the model's answer; with a ``call`` it calls that tool instead."""

    name: str

    def speaks(self, path: str) -> bool:
        """Whether a path (without its query) is this protocol's."""
        ...

    def streams(self, path: str, body: Body) -> bool: ...

    def model(self, path: str, body: Body) -> str: ...

    def tools(self, body: Body) -> list[tuple[str, Body]]:
        """The tools the request declares: name and JSON Schema of the arguments."""
        ...

    def answered(self, body: Body) -> bool:
        """Whether the request brings the result of our tool call."""
        ...

    def schema(self, body: Body) -> Body | None:
        """The JSON Schema the answer must fit, where the request states one outright."""
        ...

    def events(self, model: str, text: str, call: Call | None) -> list[bytes]:
        """A whole answer as server-sent events, in pieces."""
        ...

    def whole(self, model: str, text: str, call: Call | None) -> Body:
        """The same as one document."""
        ...

    def broken(self, model: str, text: str) -> list[bytes]:
        """A stream under status 200 that begins well and then says that the provider is overloaded."""
        ...

    def error(self, status: int, kind: str, message: str, more: Mapping[str, Any]) -> Body:
        """The vendor's error document. ``kind`` is its machine word, ``more`` what else stands in it."""
        ...


def event(data: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2 or 1
    return text[:middle], text[middle:]
