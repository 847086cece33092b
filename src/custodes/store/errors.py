# ruff: noqa: N818  # named for what is so (StoreLocked), as the kernel's errors are
"""Why the store cannot serve: one base, and every error names the file and what would work."""

from __future__ import annotations

import errno
import re
import sqlite3
from pathlib import Path


class StoreError(Exception):
    """The base of all. ``path`` is the database file."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.detail = detail


class StoreLocked(StoreError):
    """Another writer held the file for all of the ``waited`` seconds. Nothing was written; ask again."""

    def __init__(self, path: Path, waited: float) -> None:
        super().__init__(path, f"another writer holds it; waited {waited:g} s")
        self.waited = waited


class StoreFull(StoreError):
    """The disk, or a quota on it, is full. Nothing was written. Nor can it be read, where it is in use by
    nobody yet and there is no room for the memory that its users share (32 kB)."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            "the disk, or a quota on it, is full and nothing was written; "
            f"free some space on the disk of {path.parent} and ask again",
        )


class StoreTooNew(StoreError):
    """A newer version of the program has written it. It is never migrated down."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            path,
            f"its schema is version {found} and this program knows up to {known}; "
            "upgrade custodes, or move the file away",
        )
        self.found = found
        self.known = known


class StoreDamaged(StoreError):
    """Its content is damaged. ``aside`` is where the file was moved to; None where it stands as it did."""

    def __init__(self, path: Path, finding: str, aside: Path | None = None) -> None:
        what = (
            f"it was set aside as {aside.name}, and the next start begins an empty one: "
            "cooldowns and open attempts in it are not known there"
            if aside
            else "stop what uses it; the next start sets it aside"
        )
        super().__init__(path, f"the file is damaged ({finding}); {what}")
        self.finding = finding
        self.aside = aside


class StoreOnNetwork(StoreError):
    """It stands on a network file system, where SQLite's locks and shared memory do not hold."""

    def __init__(self, path: Path, file_system: str) -> None:
        super().__init__(
            path,
            f"it is on a network file system ({file_system}), where two writers could not exclude each "
            "other; keep the project on a local disk",
        )
        self.file_system = file_system


class StoreForked(StoreError):
    """Asked in a forked child of the process that opened it. Open it anew in the child."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "it was opened by the parent of this forked process; open it anew here")


class StoreClosed(StoreError):
    """Asked after it was closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "it is closed")


class StoreUnusable(StoreError):
    """The file cannot be opened, read or written: permissions, a read-only disk, an I/O error."""

    def __init__(self, path: Path, finding: str) -> None:
        super().__init__(path, f"it cannot be used: {finding}")
        self.finding = finding


class StoreReplaced(StoreUnusable):
    """The file was deleted, or another one stands in its place: what others write there is not seen here.
    Opened again, it is the one that stands there now."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "it was deleted or replaced while this process used it; start that again")


class StoreAltered(StoreError):
    """A table or a column is not there as this version of the program has them."""

    def __init__(self, path: Path, finding: str) -> None:
        super().__init__(
            path,
            f"its tables are not those of this version of custodes ({finding}): another version, or a hand, "
            "has changed them; `cos doctor` lists what differs; moved away, an empty one is begun",
        )
        self.finding = finding


class StoreUnreadable(StoreError):
    """A row holds what no version of this program writes; its query can have no answer."""

    def __init__(self, path: Path, finding: str) -> None:
        super().__init__(
            path, f"it holds a row that cannot be read ({finding}); moved away, an empty one is begun"
        )
        self.finding = finding


def translate(path: Path, error: sqlite3.Error, waited: float) -> StoreError | None:
    """The typed error of what SQLite says; None for what is a mistake of ours (bad SQL, a constraint).

    :param waited: seconds, told where the file was locked.
    """
    exact = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = exact & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(path, waited)
    if code == sqlite3.SQLITE_FULL or exact == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFull(path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(path, str(error))
    if code == sqlite3.SQLITE_ERROR and _ALTERED.search(str(error)):
        return StoreAltered(path, str(error))
    would_work = _WOULD_WORK.get(code)
    return None if would_work is None else StoreUnusable(path, f"{error}; {would_work}")


def unusable(path: Path, error: OSError) -> StoreError:
    """The typed error of what the system says of the file or its folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(path)
    said = error.strerror or str(error)
    if error.filename not in (None, str(path)):
        said = f"{said}: {error.filename}"
    theirs = error.errno in (errno.EPERM, errno.EACCES, errno.EROFS)
    return StoreUnusable(path, f"{said}; {_YOURS}" if theirs else said)


_ALTERED = re.compile(
    r"no such (table|column)|has no column named|has \d+ columns but|already exists|duplicate column"
)
"""SQLite has one code for all of it, and for bad SQL."""
_YOURS = "see that the file and its folder are yours to write, and the disk is not mounted read-only"
_WOULD_WORK = {
    sqlite3.SQLITE_CANTOPEN: _YOURS,
    sqlite3.SQLITE_PERM: _YOURS,
    sqlite3.SQLITE_READONLY: _YOURS,
    sqlite3.SQLITE_IOERR: "see that the disk, or a quota on it, has room, and what the system's log says",
}
