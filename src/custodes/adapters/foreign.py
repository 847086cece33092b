"""JSON that a program or a provider wrote: read without trust, so that any shape of it is a value of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MAX_DEPTH = 200
"""Of nesting. What is made of a document (text, a message to somebody else) nests some more."""
MAX_NAME = 200
MAX_COUNT = 10**12
"""Tokens of one report. A sum of as many reports as anybody makes still fits a store's integer."""
MAX_COST = 1e9
"""USD of one report."""


def decode(said: bytes | str, otherwise: object = None) -> Any:
    """What it says, or ``otherwise`` where it is no JSON, or nested more than `MAX_DEPTH`."""
    try:
        value = msgspec.json.decode(said)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return otherwise
    return otherwise if too_deep(said, value) else value


def too_deep(said: bytes | str, value: object) -> bool:
    """Whether a document nests more than `MAX_DEPTH`: some step after its reading would trip over it."""
    brackets = (
        said.count(b"[") + said.count(b"{") if isinstance(said, bytes) else said.count("[") + said.count("{")
    )
    if brackets <= MAX_DEPTH:
        return False
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def unfenced(answer: str) -> str:
    """An answer without the one code fence that stands around all of it, where there is one. In linear time,
    which an expression for it is not."""
    inside = answer.strip()
    opening, newline, rest = inside.partition("\n")
    fenced = newline and opening.rstrip() in ("```", "```json") and rest.endswith("```")
    return rest.removesuffix("```") if fenced else answer


def mapping(value: object) -> Mapping[str, Any]:
    """A value as a mapping; an empty one where it is something else."""
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """A value as text; "" where it is something else."""
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """An id or a model's name as text of one short line; "" where it is something else."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME and value.isprintable() else ""


def last_words(words: str, line: bytes) -> str:
    """What a runtime said on stderr lately, and one line more of it: bounded."""
    return f"{words}\n{line[:500].decode('utf-8', 'replace')}"[-2_000:]


def count(value: object) -> int | None:
    """A token count: a whole number up to `MAX_COUNT`, never negative, never a boolean; None where it is
    something else."""
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def cost(value: object) -> float | None:
    """An amount of USD, from 0 to `MAX_COST`; None where it is something else."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_COST
    return float(value) if known else None  # type: ignore[arg-type]  # known says it is one


def status(value: object) -> int | None:
    """An HTTP status, 100 to 599; None where it is something else."""
    return value if type(value) is int and 100 <= value < 600 else None


def digits(value: str) -> int | None:
    """The number that plain digits write; None where they are none, or more of them than a number has."""
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 18 else None
