"""Its usage file: the one place where it says whether it is done. It exits 0 with an error as its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from custodes.adapters import foreign
from custodes.adapters.port import Usage

_MAX_BYTES = 1 << 20
_READ = 3_900
"""Characters, of head and of tail each. The table reads 8,000 at most."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """``completed`` and ``failed`` as it states them, None where it wrote none. ``calls`` counts the requests
    of its loop: more than one means that a tool was used in between, or that a stream was tried again."""

    completed: bool | None = None
    failed: bool | None = None
    calls: int = 0
    model: str | None = None
    session: str | None = None
    failure: str = ""
    usage: Usage | None = None


def read_report(file: Path) -> Report:
    """What it wrote; an empty Report where it wrote nothing readable."""
    try:
        with file.open("rb") as opened:
            said: Any = foreign.mapping(foreign.decode(opened.read(_MAX_BYTES)))
    except OSError:
        return Report()
    plain, read = foreign.count(said.get("input_tokens")), foreign.count(said.get("cache_read_tokens"))
    written = foreign.count(said.get("cache_write_tokens"))
    usage = Usage(
        # It counts what came from the cache, and went into it, apart.
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=foreign.count(said.get("output_tokens")),
        cached_input_tokens=read,
        cost_usd=_cost(said.get("estimated_cost_usd"), said.get("cost_status")),
    )
    return Report(
        completed=_flag(said.get("completed")),
        failed=_flag(said.get("failed")),
        calls=foreign.count(said.get("api_calls")) or 0,
        model=foreign.name(said.get("model")) or None,
        session=foreign.name(said.get("session_id")) or None,
        failure=head_and_tail(foreign.text(said.get("failure"))),
        usage=usage if usage != Usage() else None,
    )


def head_and_tail(words: str) -> str:
    """What is read of a long text: an error may stand before the rest or after it."""
    return words if len(words) <= 2 * _READ else f"{words[:_READ]}\n{words[-_READ:]}"


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _cost(value: object, status: object) -> float | None:
    """It says 0.0 where it knows no price, and that it is unknown beside it."""
    return None if status in (None, "unknown") else foreign.cost(value)
