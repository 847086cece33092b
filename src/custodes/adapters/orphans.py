"""What is done when a keeper was lost: find what it may have left, end it, name the rest.

A keeper is lost only to a kill -9 of itself (or a machine out of memory). Then nothing falls back to
anyone, and what is known is the program's number, its session, and the run's mark in the environment.
That finds what runtimes do; it is no proof, and `run_program` says so by raising.
"""

from __future__ import annotations

import os
import time

import psutil

from custodes.adapters.process_errors import Survivor


def find(session: int | None, mark: tuple[str, str] | None) -> list[psutil.Process]:
    """Processes of the program's session, below its first process, or with the mark (name and value of
    an environment variable) upon them."""
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            in_session = session is not None and os.getsid(process.pid) == session
            if in_session or (mark is not None and process.environ().get(mark[0]) == mark[1]):
                found[process.pid] = process
                found.update((child.pid, child) for child in process.children(recursive=True))
        except (psutil.Error, OSError):
            continue
    return list(found.values())


def end_orphans(session: int | None, mark: tuple[str, str] | None, bound_s: float) -> tuple[Survivor, ...]:
    """Kill them until none is found; the ones left after ``bound_s`` seconds are named. Blocks."""
    deadline = time.monotonic() + bound_s
    while left := find(session, mark):
        reasons = {process: _kill(process) for process in left}
        if time.monotonic() >= deadline:
            return tuple(Survivor(process.pid, _name(process), reasons[process]) for process in left)
        psutil.wait_procs(left, timeout=0.05)
    return ()


def _kill(process: psutil.Process) -> str:
    try:
        process.kill()  # checks the start time first: never a recycled number
    except psutil.AccessDenied:
        return "forbidden"
    except psutil.NoSuchProcess:
        pass
    return "stuck"


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return "?"
