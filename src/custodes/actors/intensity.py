"""Restart intensity: how many restarts within a period are healing, and when they are a loop.

(Erlang/OTP, *Supervision Principles*, "Maximum Restart Intensity".) Over it, the supervisor itself fails,
and the decision is its parent's. The guide (``docs/actors.md``) says how to tune it across levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intensity:
    """At most ``restarts`` within any ``period`` seconds.

    One crash is one restart, whatever number of children the strategy restarts for it.

    :param backoff: seconds to wait before the first restart of a period; doubled for each further one,
        never more than ``backoff_maximum``. Zero restarts at once.
    """

    restarts: int = 3
    period: float = 5.0
    backoff: float = 0.05
    backoff_maximum: float = 1.0

    def delay(self, earlier: int) -> float:
        """Seconds to wait before a restart that ``earlier`` ones preceded within the period."""
        if not self.backoff:
            return 0.0
        # Past the cap a doubling changes nothing; bounding the exponent keeps the float finite.
        return min(self.backoff * 2.0 ** min(earlier, 64), self.backoff_maximum)

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if self.restarts < 0:
            return f"intensity.restarts must be 0 or more, not {self.restarts}"
        if not 0 < self.period < math.inf:
            return f"intensity.period must be a positive, finite number of seconds, not {self.period}"
        if not 0 <= self.backoff <= self.backoff_maximum < math.inf:
            return (
                "intensity.backoff must lie between 0 and backoff_maximum (both in seconds, finite), "
                f"not {self.backoff} and {self.backoff_maximum}"
            )
        waited = sum(self.delay(earlier) for earlier in range(self.restarts))
        if waited >= self.period:
            return (
                f"the backoff alone spreads {self.restarts} restarts over {waited:g} s, more than the period "
                f"of {self.period:g} s: the intensity could never be exceeded. Lengthen the period or "
                "shorten the backoff"
            )
        return None


@dataclass(frozen=True, slots=True)
class Crash:
    """One entry of the history: when (seconds, of any monotonic clock) and why."""

    at: float
    cause: Exception


@dataclass(frozen=True, slots=True)
class Verdict:
    """``delay`` is the seconds to wait before the restart; None means that the intensity is exceeded."""

    history: tuple[Crash, ...]
    delay: float | None


def judge(intensity: Intensity, history: tuple[Crash, ...], crash: Crash) -> Verdict:
    """Count one crash. The history it returns holds the crashes of the period that ends with this one."""
    recent = tuple(earlier for earlier in history if crash.at - earlier.at < intensity.period)
    exceeded = len(recent) >= intensity.restarts
    return Verdict((*recent, crash), None if exceeded else intensity.delay(len(recent)))
