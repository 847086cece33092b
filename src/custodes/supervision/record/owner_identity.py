"""Which process owns a row, so exactly that nobody is ever taken for it: and whether it is proven dead."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import msgspec
import psutil

from custodes.supervision.record.clock import boot_id


class Owner(msgspec.Struct, frozen=True, array_like=True):
    """``started`` is the process's start, comparable within one boot only; ``space`` its pid namespace."""

    pid: int
    started: float
    boot: str
    space: str = ""


def this_process() -> Owner:
    """The calling process. A fork is another one."""
    return _identity(os.getpid())


@functools.lru_cache(maxsize=1)
def _identity(pid: int) -> Owner:
    return Owner(pid, start_of(pid) or 0.0, boot_id(), pid_space())


def start_of(pid: int) -> float | None:
    """When a process started; None where there is none of this pid (one that waits to be reaped is none).

    On Linux in clock ticks since boot: the start time that psutil tells moves with the wall clock.
    """
    if sys.platform == "linux":
        try:
            # The name in parentheses may hold anything; the numbers stand after the last one.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else float(fields[19])
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None


def proven_dead(owner: Owner) -> bool:
    """Whether that very process is gone for certain; False where it cannot be known.

    Another boot is proof (the store refuses a file system that machines share). Another pid namespace is
    none: its pids mean nothing here.
    """
    if owner.boot != boot_id():
        return True
    if owner.space != pid_space():
        return False
    return start_of(owner.pid) != owner.started


@functools.cache
def pid_space() -> str:
    """What names the pid namespace; empty where the platform has one only."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
