"""Where the file stands: on a local disk, readable by its owner alone, and whole."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path

import filelock
import psutil

from .errors import StoreDamaged, StoreOnNetwork, translate, unusable

NETWORK = frozenset({
    "9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse", "gfs2", "glusterfs", "gpfs", "lustre",
    "macfuse", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "osxfuse", "prl_fs", "smb2", "smb3", "smbfs",
    "vboxsf", "virtiofs", "vmhgfs", "webdav",
})  # fmt: skip
"""File systems of other machines, and shares of a virtual machine's host. (SQLite, "How To Corrupt An SQLite
Database File", 2.1, and "Write-Ahead Logging": every process must be on the same host computer.)"""

COMPANIONS = ("-wal", "-shm")


_making = threading.Lock()
"""Nobody of this process opens a file that another one of it is still making."""


def file_system(path: Path) -> str:
    """The type of the file system that holds ``path``, as the platform names it; empty where unknown."""
    real = path.resolve()
    mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    return next((mounts[place] for place in (real, *real.parents) if place in mounts), "")


def irregular(path: Path) -> str | None:
    """What stands there instead of a file, and what would work; None for a file, or nothing.

    A link is followed to no file: a repository could bring one along that names any file of its user's.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
    if stat.S_ISREG(mode):
        return None
    kind = "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "no ordinary file"
    return f"{kind} stands there; moved away, a file is made"


def prepare(path: Path) -> None:
    """Make the file (and its folder) where it is missing, mode 0600, before SQLite makes it any wider.

    One that is there is never opened: to close it again would end the locks that other connections of this
    process have on it (POSIX advisory locks are the process's), and whoever then closes it elsewhere would
    take its log away from them. ("How To Corrupt An SQLite Database File", 2.2.)

    :raises StoreOnNetwork: it would stand on a network file system.
    :raises StoreFull, StoreUnusable: it cannot be made, or its mode not set.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        found = file_system(path.parent)
        if found.lower() in NETWORK:
            raise StoreOnNetwork(path, found)
        with _making:
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)  # also one that was made wider, by another hand
    except OSError as error:
        raise unusable(path, error) from error


def refuse_damaged(path: Path) -> None:
    """Look at the file as a whole; a damaged one is set aside, with its companions, under a new name.

    A few milliseconds for the sizes that retention leaves. A file that is locked is looked at later: by
    whoever opens it next.

    :raises StoreDamaged: it was damaged. Once: the next call finds no file, or another's new one.
    """
    if damage(path) is None:
        return
    # Of several processes that see the damage, one moves the file; the others look again at the new one.
    with filelock.FileLock(f"{path}.aside-lock"):
        finding = damage(path)
        if finding is None:
            return
        aside = path.with_name(
            f"{path.name}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        )
        for suffix in ("", *COMPANIONS):
            if (part := Path(f"{path}{suffix}")).exists():
                part.rename(f"{aside}{suffix}")
    raise StoreDamaged(path, finding, aside)


def damage(path: Path) -> str | None:
    """What is wrong with the content; None where nothing is, or where there is no file."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
            ((finding,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        wrong = translate(path, error, 0.2)
        return wrong.finding if isinstance(wrong, StoreDamaged) else None
    return None if finding == "ok" else str(finding)


def identity(path: Path) -> tuple[int, int]:
    """Which file it is, whatever its name: its device and inode."""
    found = path.stat()
    return found.st_dev, found.st_ino


def replaced(path: Path, opened: tuple[int, int]) -> bool:
    """Whether another file than the one that was opened stands there now, or none, in a folder that is still
    there. A project that was moved as a whole takes its file along."""
    try:
        return identity(path) != opened
    except FileNotFoundError:
        return path.parent.exists()
    except OSError:  # what is wrong there SQLite tells better
        return False
