"""The ids of runs and of their attempts, and what a host may call things by."""

from __future__ import annotations

import itertools
import secrets
import time

_made = itertools.count()


def new_id() -> str:
    """Unguessable, and sorted by the millisecond it was made in; those of one process and one millisecond in
    the order in which they were made, since children that are asked for in one breath are let in as one.

    So rows that are written together stand together, and a commit of them writes few pages: with ids at
    random, each row has a page of its own to write.
    """
    return f"{time.time_ns() // 1_000_000:012x}{next(_made) & 0xFFFF:04x}{secrets.token_hex(8)}"


def recordable(what: str, text: str) -> str:
    """The text that a host calls ``what`` by: its rows can hold it, and be read again.

    :raises TypeError: it is no text.
    :raises ValueError: it is no Unicode.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} is Unicode text, not {text!r}") from None
    return text
