# ruff: noqa: N818  # named for what is so (StoreLocked), as the kernel's errors are
"""Why the store cannot serve: one base, and every error names the file and what would work."""

from __future__ import annotations

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
    """The disk, or a quota on it, is full. Nothing was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the disk is full and nothing was written; free some space and ask again")


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
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLocked(path, waited)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(path, str(error))
    unusable = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM)
    return StoreUnusable(path, str(error)) if code in unusable else None
