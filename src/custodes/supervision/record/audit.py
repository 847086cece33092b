"""The operator's overrides, one line each, in ``.coding-os/extensions-audit.log``."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from custodes.store import irregular
from custodes.supervision.record.clock import Now

LOG = Path(".coding-os") / "extensions-audit.log"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """``by`` is the surface it came from (``cli``, ``mcp``, ``hub``, …), ``at`` an ISO time in UTC."""

    at: str
    by: str
    action: str
    target: str
    detail: tuple[str, ...] = ()


class AuditError(Exception):
    """An override was done, and is not in the log. It says so, why, and what would work."""


async def write_down(
    project: Path, action: str, target: str, by: str, at: Now, detail: tuple[str, ...] = ()
) -> None:
    """Add what was overridden just now to the log. Shielded: what was done is written down.

    :raises AuditError: it cannot be written.
    """
    moment = datetime.fromtimestamp(at.wall, UTC).isoformat(timespec="seconds")
    entry = Entry(at=moment, by=by, action=action, target=target, detail=detail)
    try:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(append_line, project / LOG, msgspec.json.encode(entry))
    except OSError as error:
        done = f"{action} {target!r} was done, but is missing in the audit log"
        how = "note it there once that is mended"
        raise AuditError(f"{done} ({project / LOG}: {error.strerror}); {how}") from error


def append_line(file: Path, line: bytes) -> None:
    """Add a line to a file, made where it is missing (mode 0600). Blocks.

    One write to an append-only descriptor: lines of several processes never mix. One that was cut, by a kill
    or a full disk, stands on a line of its own. A link is not followed: a repository could bring one along
    that names any file of its user's.

    :raises OSError: it cannot be written, or not as a whole.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if (wrong := irregular(file)) is not None:
        raise OSError(errno.EINVAL, wrong, str(file))
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(file, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        whole = (b"\n" if cut else b"") + line + b"\n"
        written = os.write(descriptor, whole)
    finally:
        os.close(descriptor)
    if written < len(whole):  # the rest by itself could come after another process's line
        why = f"{written} of {len(whole)} bytes were written; free some space, or widen the quota"
        raise OSError(errno.ENOSPC, why, str(file))
