"""A contender: a process of its own that measures what it is asked to, on request.

It is told a case and a size, a line of JSON each time, and answers with one: ``figures`` by their name, in
seconds, bytes or a plain count, and the processor's seconds that it ``used`` to find them. This module is
imported in the peers' own environments: the standard library is all it has.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

Figures = dict[str, float]
"""What one ask of a case came to, by name: ``seconds`` by the clock and ``cpu`` of the processor for each,
and what else the case counts."""
Case = Callable[[int], Figures]
"""Measures with so many of what the case is about."""

ENOUGH_CPU_S = 0.05
"""Short, so that the next contender has its turn while the machine is as it was."""
ENOUGH_S = 3.0


class Spent:
    """What a case took, over as many runs as make a figure that a timer's grain does not show in."""

    def __init__(self) -> None:
        self._times = 0
        self._seconds = 0.0
        self._cpu = 0.0
        self._begun = (0.0, 0.0)

    @property
    def enough(self) -> bool:
        return self._cpu >= ENOUGH_CPU_S or self._seconds >= ENOUGH_S

    def begin(self) -> None:
        self._begun = (time.perf_counter(), processor())

    def end(self, times: int = 1) -> None:
        """What ran since it began has done it so many times."""
        begun, before = self._begun
        self._seconds += time.perf_counter() - begun
        self._cpu += processor() - before
        self._times += times

    @contextmanager
    def counting(self, times: int = 1) -> Iterator[None]:
        """What runs inside does it so many times."""
        self.begin()
        yield
        self.end(times)

    def figures(self) -> Figures:
        """For each time."""
        return {"seconds": self._seconds / self._times, "cpu": self._cpu / self._times}


def repeated(action: Callable[[], object], times: int = 1) -> Figures:
    """``action``, which does it so many times, once unmeasured and then until it is enough."""
    action()
    spent = Spent()
    while not spent.enough:
        with spent.counting(times):
            action()
    return spent.figures()


def processor() -> float:
    """The processor's seconds of this process, every thread of it, and of the processes it has waited for."""
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + waited.ru_utime + waited.ru_stime


def serve(version: str, cases: Mapping[str, Case]) -> None:
    """Answer until the input ends. What goes wrong in a case is its answer: ``{"cannot": …}``."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    print(json.dumps({"version": version, "cases": list(cases)}), file=answers)
    last = ""
    for line in sys.stdin:
        asked = json.loads(line)
        if line != last:
            gc.collect()  # what another case has left is not this one's
        last = line
        answer: dict[str, Figures | float | str]
        before = processor()
        try:
            answer = {"figures": cases[asked["case"]](asked["size"]), "used": processor() - before}
        except Exception as error:  # a contender that cannot is named, and the others go on
            answer = {"cannot": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers)
