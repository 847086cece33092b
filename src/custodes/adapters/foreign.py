"""JSON that a program or a provider wrote: read without trust, so that any shape of it is a value of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def decode(said: bytes | str, otherwise: object = None) -> Any:
    """What it says, or ``otherwise`` where it is no JSON (also for nesting without end)."""
    try:
        return msgspec.json.decode(said)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return otherwise


def mapping(value: object) -> Mapping[str, Any]:
    """A value as a mapping; an empty one where it is something else."""
    return value if isinstance(value, Mapping) else {}


def text(value: object) -> str:
    """A value as text; "" where it is something else."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A token count: a whole number, never negative, never a boolean; None where it is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
