"""The runtime of the soak's project: a program that does one deed, and proves on the way what it must.

Run as ``python -I -S program.py JOURNAL COS`` with the deed in its prompt; the standard library alone, since
it is started thousands of times. A writer locks what it writes, and a lock ends with its process: so one that
is not free is proof of a second writer. What it changes is one line in the journal, written at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

MARK = "soak "
"""What a deed follows in a prompt, at the start of a line."""
RUN = "CUSTODES_RUN"
NEST_BOUND_S = 40.0
"""How long the scope of nested work may stay taken whose client was killed: nobody waits for its end."""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
STATED: dict[str, dict[str, Any]] = {
    "limit": {"category": "capacity", "retry_after_s": 2},
    "unchanged": {"category": "provider"},
    "overload": {"category": "provider", "overloaded": True},
}
"""Ends that a program tells of itself, having changed nothing."""


class Deed(TypedDict):
    """``leaves`` are what it writes, in ``scope``; ``end`` is what `end` makes of it. ``seconds`` of work,
    with a ``tool`` that ignores a polite end, and ``nest``, each as a child of its own."""

    key: str
    role: str
    model: str
    seconds: float
    end: str
    leaves: list[str]
    scope: list[str]
    tool: bool
    nest: list[Deed]


class Journal:
    """What all programs of a soak tell: each line is one write, and so whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tell(self, what: str, deed: Deed, **more: Any) -> None:
        line = {
            "what": what,
            "key": deed["key"],
            "end": deed["end"],
            "run": os.environ.get(RUN),
            "pid": os.getpid(),
            **more,
        }
        with (self._folder / "journal").open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")

    def lock(self, leaf: str) -> int | None:
        """A descriptor that holds the leaf until it is closed; None where somebody else does."""
        descriptor = os.open(self._folder / f"{leaf}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


class Writer:
    """Holds the leaves of a scope while it writes; not while it waits for a child that borrows of them."""

    def __init__(self, journal: Journal, deed: Deed) -> None:
        self._journal = journal
        self._deed = deed
        self._held: list[int] = []

    def take(self, bound_s: float = 0.0) -> None:
        deadline = time.monotonic() + bound_s
        for leaf in self._deed["leaves"]:
            while (held := self._journal.lock(leaf)) is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if held is None:
                self._journal.tell("second writer", self._deed, leaf=leaf)
            else:
                self._held.append(held)

    def give(self) -> None:
        while self._held:
            os.close(self._held.pop())


def deed_in(prompt: str) -> Deed:
    """The first deed that a prompt holds."""
    at = prompt.index("{", prompt.index(f"{MARK}{{"))
    deed: Deed
    deed, _ = json.JSONDecoder().raw_decode(prompt, at)
    return deed


def nested(cos: str, deed: Deed, key: str) -> int:
    """Have a child do it, as a runtime's own tool would; the exit code of its client."""
    told = json.dumps({**deed, "key": key})
    words = ["dispatch", "--role", deed["role"], "--model", deed["model"], "--timeout", "6"]
    for path in deed["scope"]:
        words += ["--scope", path]
    return subprocess.run(
        [cos, *words, "--format", "json", f"{MARK}{told}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode


def end(deed: Deed) -> int:
    """Print what the deed is to come to; the exit code."""
    how = deed["end"]
    if how in STATED:
        print(json.dumps({"failure": {**STATED[how], "outcome": "known_failed"}}))
        return 1
    if how == "crash":
        return 3
    if how == "hang":
        time.sleep(600)
    if how == "noise":
        print("x" * 2_000_000)
    if how == "well":
        print(json.dumps({"summary": f"did {deed['key']}"}))
    return 0


def main(folder: str, cos: str) -> int:
    journal, deed = Journal(Path(folder)), deed_in(sys.stdin.read())
    journal.tell("begun", deed)
    writer = Writer(journal, deed)
    writer.take()
    if deed["tool"]:
        subprocess.Popen([sys.executable, "-I", "-S", "-c", STUBBORN], start_new_session=True)
    time.sleep(deed["seconds"] / 2)
    for number, below in enumerate(deed["nest"]):
        writer.give()
        code = nested(cos, below, f"{deed['key']}/{os.getpid()}.{number}")
        writer.take(NEST_BOUND_S if code < 0 else 0.0)
    if deed["leaves"] and deed["end"] not in STATED:
        journal.tell("effect", deed)
    time.sleep(deed["seconds"] / 2)
    return end(deed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
