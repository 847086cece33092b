"""Times that neither a stepped wall clock, nor a suspend, nor a reboot turns into a lie.

A moment is read from two clocks. Within one boot only the boot clock decides (seconds since boot, suspend
included; nobody can set it). Wall time decides once, after a reboot, and grants at most the length that was
granted first.
"""

from __future__ import annotations

import functools
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from custodes.system import unsupported


class Now(msgspec.Struct, frozen=True):
    """A moment: which boot, ``uptime`` in seconds since it, ``wall`` in seconds since the epoch."""

    boot: str
    uptime: float
    wall: float


class Deadline(msgspec.Struct, frozen=True, array_like=True):
    """The end of a wait of ``length`` seconds, on both clocks."""

    boot: str
    uptime: float
    wall: float
    length: float

    def remaining(self, now: Now) -> float:
        """Seconds left, never negative, never more than ``length``."""
        left = self.uptime - now.uptime if self.boot == now.boot else self.wall - now.wall
        return min(max(left, 0.0), self.length)

    def anchored(self, now: Now) -> Deadline:
        """Itself within its own boot; after a reboot, what is left of it on this boot's clock.

        Store the result: it is wall time's one word, and no later step of the wall clock moves it.
        """
        return self if self.boot == now.boot else after(self.remaining(now), now)


def wall_after(begun: Now, now: Now) -> float:
    """Wall seconds of ``now`` as the wall clock of ``begun`` counts on: what passed between the two is taken
    from the boot clock, so that a step of the wall clock makes nothing longer or shorter than it was. In
    another boot it is what the wall clock says."""
    return begun.wall + (now.uptime - begun.uptime) if begun.boot == now.boot else now.wall


def after(seconds: float, now: Now) -> Deadline:
    """The deadline ``seconds`` from ``now``."""
    return Deadline(now.boot, now.uptime + seconds, now.wall + seconds, seconds)


def later(one: Deadline | None, other: Deadline, now: Now) -> Deadline:
    """The one of the two that ends later; nothing learned ever shortens a wait."""
    return one if one is not None and one.remaining(now) >= other.remaining(now) else other


def whole_seconds(seconds: float) -> int:
    """For people and for ``retry_after_s``: rounded up, and at least 1, so that nobody asks too early."""
    return max(1, math.ceil(seconds))


def local_time(wall: float) -> str:
    """For people, in this machine's zone; "?" for a moment that no calendar holds, as a torn row may say."""
    return _written(wall, time.localtime, "%Y-%m-%d %H:%M:%S")


def utc_time(wall: float) -> str:
    """For programs, as RFC 3339 has it; "?" as for :func:`local_time`."""
    return _written(wall, time.gmtime, "%Y-%m-%dT%H:%M:%SZ")


def _written(wall: float, parts: Callable[[float], time.struct_time], form: str) -> str:
    try:
        return time.strftime(form, parts(wall))
    except (OverflowError, OSError, ValueError):
        return "?"


@functools.cache
def boot_id() -> str:
    """What names this boot of this machine.

    :raises RuntimeError: the system is one on which this does not run.
    """
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if why := unsupported(sys.platform):
        raise RuntimeError(why)
    asked = subprocess.run(
        ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""macOS counts suspended time in its monotonic clock; Linux has a clock of its own for that."""


def now() -> Now:
    """This moment. A few microseconds; any thread."""
    return Now(boot_id(), time.clock_gettime(_BOOT_CLOCK), time.time())
