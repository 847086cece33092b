"""The operator's overrides, one line each, in ``.coding-os/extensions-audit.log``."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from custodes.supervision.record.clock import Now

LOG = Path(".coding-os") / "extensions-audit.log"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """``by`` is the surface it came from (``cli``, ``mcp``, ``hub``, …), ``at`` an ISO time in UTC."""

    at: str
    by: str
    action: str
    target: str
    detail: tuple[str, ...] = ()


def append(project: Path, entry: Entry) -> None:
    """Add a line of JSON to the log. Blocks. :raises OSError: it cannot be written."""
    append_line(project / LOG, msgspec.json.encode(entry))


def append_line(file: Path, line: bytes) -> None:
    """Add a line to a file, made where it is missing (mode 0600). Blocks.

    One write to an append-only descriptor: lines of several processes never mix.

    :raises OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line + b"\n")
    finally:
        os.close(descriptor)


def entry(action: str, target: str, by: str, at: Now, detail: tuple[str, ...] = ()) -> Entry:
    moment = datetime.fromtimestamp(at.wall, UTC).isoformat(timespec="seconds")
    return Entry(at=moment, by=by, action=action, target=target, detail=detail)
