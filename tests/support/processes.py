"""Real process trees for tests, and an outside view of what is left of them."""

from __future__ import annotations

import time
import uuid

import psutil

RUN = "CUSTODES_RUN"

# Ignores TERM (inherited through exec), opens sessions of its own, and forks twice so that the last ones
# have no parent left. Says "up" when all of it runs.
HARD_TREE = """
trap '' TERM
setsid sh -c '(setsid sleep 300 &); sleep 300' &
(setsid sh -c 'sleep 300 & sleep 300' &)
sleep 300 &
echo up
sleep 300
"""


def new_mark() -> str:
    """A value for ``CUSTODES_RUN`` that no other process carries."""
    return uuid.uuid4().hex


def marked(mark: str) -> list[psutil.Process]:
    """The living processes whose environment carries the mark: independent of what a keeper says."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(RUN) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_gone(mark: str, bound_s: float = 20.0) -> list[psutil.Process]:
    """Look until no process carries the mark; what is left at the (generous) bound."""
    deadline = time.monotonic() + bound_s
    while (left := marked(mark)) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=0.05)
    return left
