"""What the processes that are spared grow to: memory, files and threads over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

import anyio
import psutil

from support.soak.crew import Crew

EVERY_S = 4.0
FEWEST = 40
"""Samples below which nothing is said of a process: it is still warming up."""


class Sample(NamedTuple):
    at: float
    megabytes: float
    files: int
    threads: int


class Allowed(NamedTuple):
    """By how much, and by what part, the end of a life may lie above its beginning."""

    amount: float
    part: float


ALLOWED = {"megabytes": Allowed(16, 0.25), "files": Allowed(8, 0.5), "threads": Allowed(4, 0.5)}


class Growth:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.samples: defaultdict[str, list[Sample]] = defaultdict(list)
        """By what the process is, with its pid."""

    async def work(self) -> None:
        while not self._crew.over:
            for pid in tuple(self._crew.immortal):
                try:
                    process = psutil.Process(pid)
                    name = f"{' '.join(process.cmdline()[1:])[-40:]} (pid {pid})"
                    self.samples[name].append(
                        Sample(
                            round(self._crew.age, 1),
                            process.memory_info().rss / 1e6,
                            process.num_fds(),
                            process.num_threads(),
                        )
                    )
                except psutil.Error:
                    continue
            await anyio.sleep(EVERY_S)

    def told(self) -> Iterator[str]:
        """A line for each process, for people."""
        for name, samples in self.samples.items():
            first, last = early(samples), late(samples)
            figures = ", ".join(
                f"{what} {getattr(first, what):.0f} -> {getattr(last, what):.0f}" for what in ALLOWED
            )
            yield f"{name}: {len(samples)} samples: {figures}"

    def judge(self) -> None:
        for name, samples in self.samples.items():
            for words in grown(samples):
                self._crew.fault(f"{name} grew: {words}")


def early(samples: Sequence[Sample]) -> Sample:
    """The middle of what was seen in the second fifth of its life: when it has warmed up."""
    return _middle(samples[len(samples) // 5 : max(1, 2 * len(samples) // 5)] or samples)


def late(samples: Sequence[Sample]) -> Sample:
    """The middle of what was seen in the last fifth."""
    return _middle(samples[-max(1, len(samples) // 5) :])


def _middle(samples: Sequence[Sample]) -> Sample:
    columns = zip(*samples, strict=True)
    at, megabytes, files, threads = (median(column) for column in columns)
    return Sample(at, megabytes, int(files), int(threads))


def grown(samples: Sequence[Sample]) -> Iterator[str]:
    if len(samples) < FEWEST:
        return
    first, last = early(samples), late(samples)
    for what, allowed in ALLOWED.items():
        before, after = getattr(first, what), getattr(last, what)
        if after - before > allowed.amount and after - before > allowed.part * before:
            yield f"{what} from {before:.0f} to {after:.0f}"
