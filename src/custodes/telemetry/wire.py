"""What a protobuf body unfolds to, counted on the wire before anything is made of it: an empty message has
two bytes there, and hundreds in memory.

(protobuf.dev, "Encoding": a tag holds a field's number and its wire type.)
"""

from __future__ import annotations

from typing import Any

_VARINT, _SIZED = 0, 2
_FIXED = {1: 8, 5: 4}
"""Bytes, by wire type. A group's two tags (3 and 4) have none: what is between is counted where it stands."""
_LONGEST = 10
"""Bytes of a varint."""


def unfolds_beyond(most: int, body: bytes, kind: Any) -> bool:
    """Whether the body holds more than ``most`` messages, at any depth. It need not be well formed.

    :param kind: protobuf's descriptor of the whole.
    """
    if len(body) < 2 * most:
        return False
    fields: dict[str, dict[int, Any]] = {}  # of a kind of message: what each holds, None for no message
    pending = [(0, len(body), kind)]
    seen = 0
    while pending:
        at, end, kind = pending.pop()
        if (nested := fields.get(kind.full_name)) is None:
            nested = fields[kind.full_name] = {
                number: field.message_type for number, field in kind.fields_by_number.items()
            }
        while at < end:
            tag, at = _varint(body, at)
            wire_type = tag & 7
            if wire_type == _VARINT:
                _, at = _varint(body, at)
            elif wire_type == _SIZED:
                size, at = _varint(body, at)
                if (inner := nested.get(tag >> 3)) is not None:
                    seen += 1
                    if seen > most:
                        return True
                    if size:
                        pending.append((at, min(at + size, end), inner))
                at += size
            else:
                at += _FIXED.get(wire_type, 0)
    return False


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """The number that stands there, and where it ends; past the end of the body where that comes first."""
    if at < len(body) and body[at] < 0x80:  # nearly every one
        return body[at], at + 1
    value = 0
    for place, byte in enumerate(body[at : at + _LONGEST]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    return 0, len(body)
