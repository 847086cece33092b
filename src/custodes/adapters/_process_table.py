"""The keeper's second way to know its tree: by reading the process table (macOS; no subreaper).

An orphan does not fall back to us there, so the table is read every ``look_s`` seconds while the program
runs and each descendant is remembered by number and start time. What was born *and* orphaned between two
looks is still found by its process group; one that also left its group within that time is not: the proof
is that strong and no stronger.

Run by the keeper's isolated interpreter: standard library only.
"""

# pathlib would double the keeper's start:
# ruff: noqa: PTH110, PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import signal


class Process:
    """One row: ``started`` tells it from a later process with the same number."""

    __slots__ = ("group", "name", "parent", "started")

    def __init__(self, parent: int, group: int, started: str, name: str) -> None:
        self.parent = parent
        self.group = group
        self.started = started
        self.name = name


def by_proc() -> dict[int, Process]:
    """Every process of /proc that is not a zombie."""
    rows = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
            head, _, tail = file.read().decode(errors="replace").rpartition(")")
            fields = tail.split()
            if fields[0] not in ("Z", "X"):
                rows[int(entry)] = Process(int(fields[1]), int(fields[2]), fields[19], head.partition("(")[2])
    return rows


def by_ps() -> dict[int, Process]:
    """The same by POSIX ``ps``; its ``lstart`` is five words long and exact to a second."""
    out, into = os.pipe()
    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart=,comm="]
    actions = [(os.POSIX_SPAWN_DUP2, into, 1)]
    ps = os.posix_spawnp("ps", command, {"PATH": "/bin:/usr/bin", "LC_ALL": "C"}, file_actions=actions)
    os.close(into)
    with open(out, "rb") as file:
        lines = file.read().decode(errors="replace").splitlines()
    os.waitpid(ps, 0)
    rows = {}
    for line in lines:
        fields = line.split(None, 9)
        if len(fields) == 10 and not fields[3].startswith("Z") and int(fields[0]) != ps:
            rows[int(fields[0])] = Process(
                int(fields[1]), int(fields[2]), " ".join(fields[4:9]), fields[9].rpartition("/")[2]
            )
    return rows


class Table:
    """The tree of this process's descendants, as far as looking regularly shows it."""

    look_s = 0.5

    def __init__(self) -> None:
        self.read = by_proc if os.path.exists("/proc/self/stat") else by_ps
        self.known: dict[int, Process] = {}

    def look(self) -> None:
        """Forget who is gone, then take in children of the known and members of their groups."""
        rows = self.read()
        own, own_group = os.getpid(), os.getpgrp()
        groups = {process.group for process in self.known.values()} - {own_group}
        known = {
            pid: rows[pid]
            for pid, process in self.known.items()
            if pid in rows and rows[pid].started == process.started
        }
        grown = True
        while grown:
            fresh = {
                pid: process
                for pid, process in rows.items()
                if pid not in known
                and (process.parent == own or process.parent in known or process.group in groups)
            }
            known.update(fresh)
            groups |= {process.group for process in fresh.values()} - {own_group}
            grown = bool(fresh)
        self.known = known

    def gone(self) -> bool:
        self.look()
        return not self.known

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # a stopped process could not act on it

    def kill(self, thorough: bool) -> None:  # noqa: ARG002 - every kill here walks the whole tree
        self.look()
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        for pid in self.known:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def remains(self) -> list[tuple[int, str]]:
        return [(pid, process.name) for pid, process in self.known.items()]
