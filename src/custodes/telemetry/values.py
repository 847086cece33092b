"""What of a value may leave the process as an attribute: bounded, and never what breaks its batch.

The SDK limits no length by default, and one text that cannot be encoded, or one number over 64 bits,
loses every span that shares its export.
"""

from __future__ import annotations

from collections.abc import Mapping

Value = str | bool | int | float

MAX_CHARACTERS = 1024
_INT64 = 2**63


def text(value: str, most: int = MAX_CHARACTERS) -> str:
    """At most ``most`` characters; a lone surrogate (from a runtime's output) becomes ``?``."""
    value = value[:most]
    return value if value.isascii() else value.encode(errors="replace").decode()


def clean(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    """Without what is not known (None) and what has no 64-bit form."""
    kept: dict[str, Value] = {}
    for name, value in attributes.items():
        if isinstance(value, str):
            kept[name] = text(value)
        elif isinstance(value, float) or (isinstance(value, int) and -_INT64 <= value < _INT64):
            kept[name] = value
    return kept
