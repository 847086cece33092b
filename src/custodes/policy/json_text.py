"""Edits of a JSON document as text: what an edit does not name keeps its bytes.

The settings file belongs to several programs and to a person. Decoding it and printing it again would
rewrite numbers, escapes, spacing and short arrays that are none of ours, so a value is replaced, put in
or taken out where it stands, in the style of its neighbours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from json.decoder import JSONDecoder
from typing import Any, NamedTuple

import msgspec


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Set the value at a path of keys, or take the key out with ``value=msgspec.UNSET``. Objects on the
    way are made where they are missing."""

    path: tuple[str, ...]
    value: Any = msgspec.UNSET


class _Member(NamedTuple):
    key: str
    key_start: int
    value_start: int
    value_end: int


_DECODER = JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


def _skip(document: str, at: int) -> int:
    match = _SPACE.match(document, at)
    return match.end() if match else at


def _members(document: str, start: int) -> tuple[list[_Member], int]:
    """The members of the object that opens at ``start``, and the place of its closing brace."""
    members: list[_Member] = []
    at = _skip(document, start + 1)
    while document[at] != "}":
        key, after = _DECODER.raw_decode(document, at)
        value_start = _skip(document, _skip(document, after) + 1)
        _, value_end = _DECODER.raw_decode(document, value_start)
        members.append(_Member(key, at, value_start, value_end))
        at = _skip(document, value_end)
        if document[at] == ",":
            at = _skip(document, at + 1)
    return members, at


class _Style(NamedTuple):
    """How the document is written. ``unit`` is None where it stands on one line."""

    newline: str
    unit: str | None
    colon: str
    comma: str

    @classmethod
    def of(cls, document: str, root: int) -> _Style:
        members, _ = _members(document, root)
        newline = "\r\n" if "\r\n" in document else "\n"
        if not members:
            return cls(newline, "  ", ": ", ", ")
        first = members[0]
        before = document[root + 1 : first.key_start]
        unit = before.rpartition("\n")[2] if "\n" in before else None
        _, colon_at = _DECODER.raw_decode(document, first.key_start)
        comma = ", "
        if len(members) > 1 and unit is None:
            comma = document[first.value_end : members[1].key_start]
        return cls(newline, unit, document[colon_at : first.value_start], comma)

    def render(self, value: Any, depth: int) -> str:
        """``value`` as the member of an object whose own members stand at ``depth`` units."""
        if not isinstance(value, dict):
            return json.dumps(value, ensure_ascii=False)
        if not value:
            return "{}"
        body = [
            f"{json.dumps(k, ensure_ascii=False)}{self.colon}{self.render(v, depth + 1)}"
            for k, v in value.items()
        ]
        if self.unit is None:
            return "{" + self.comma.join(body) + "}"
        inner = self.newline + self.unit * (depth + 1)
        return "{" + inner + f",{inner}".join(body) + self.newline + self.unit * depth + "}"


def edit(document: str, edits: Iterable[Edit]) -> str:
    """The document with the edits made, one after the other.

    ``document`` must be valid JSON with an object at its root and no key twice.
    """
    for change in edits:
        document = _edit_one(document, change)
    return document


def _edit_one(document: str, change: Edit) -> str:
    root = at = _skip(document, 0)
    *parents, last = change.path
    removing = change.value is msgspec.UNSET
    for depth, key in enumerate(parents):
        member = next((m for m in _members(document, at)[0] if m.key == key), None)
        if member is not None and document[member.value_start] == "{":
            at = member.value_start
            continue
        if removing:
            return document
        nested = change.value
        for missing in reversed(change.path[depth + 1 :]):
            nested = {missing: nested}
        return _put(document, root, at, depth, key, nested)
    if removing:
        return _take_out(document, at, last)
    return _put(document, root, at, len(parents), last, change.value)


def _put(document: str, root: int, at: int, depth: int, key: str, value: Any) -> str:
    """Set ``key`` in the object that opens at ``at`` and is itself ``depth`` objects below the root."""
    style = _Style.of(document, root)
    members, end = _members(document, at)
    member = next((m for m in members if m.key == key), None)
    rendered = style.render(value, depth + 1)
    if member is not None:
        current = json.loads(document[member.value_start : member.value_end])
        if type(current) is type(value) and current == value:
            return document
        return document[: member.value_start] + rendered + document[member.value_end :]
    text = f"{json.dumps(key, ensure_ascii=False)}{style.colon}{rendered}"
    if members:
        last = members[-1]
        if len(members) > 1:
            gap = document[members[-2].value_end : last.key_start].partition(",")[2]
        else:
            gap = document[at + 1 : last.key_start] or style.comma.partition(",")[2]
        return document[: last.value_end] + "," + gap + text + document[last.value_end :]
    if style.unit is None:
        return document[: at + 1] + text + document[end:]
    inner = style.newline + style.unit * (depth + 1)
    return document[: at + 1] + inner + text + style.newline + style.unit * depth + document[end:]


def _take_out(document: str, at: int, key: str) -> str:
    members, end = _members(document, at)
    index = next((i for i, m in enumerate(members) if m.key == key), None)
    if index is None:
        return document
    if index > 0:
        return document[: members[index - 1].value_end] + document[members[index].value_end :]
    if len(members) > 1:
        return document[: members[0].key_start] + document[members[1].key_start :]
    return document[: at + 1] + document[end:]
