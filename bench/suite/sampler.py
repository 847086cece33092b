"""Where the processor's time of this process goes, by looking at its stacks now and then.

A timer of the processor's time interrupts the main thread each millisecond, or as often as the kernel's clock
ticks. Each thread's own time since the last look is put down to the stack that it then has, so an idle thread
counts for nothing, and a look that comes late for as much as it missed. Collections of cycles, which nothing
interrupts, are timed for themselves. Nothing is instrumented: what is looked at runs as it always does.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERVAL_S = 0.001


class Sampler:
    """Make it before the threads that it is to look at: they then leave the timer's signal to the main
    thread, which would not wake for one that another thread took.

    :param placed: what a stack, its innermost frame given, is counted as; any number of names.
    """

    def __init__(self, placed: Callable[[FrameType], set[str]]) -> None:
        self.seconds: dict[str, float] = {}
        """The processor's seconds by name."""
        self.collecting = 0.0
        """Those of collections of cycles, which are in none of the others."""
        self.total = 0.0
        self._placed = placed
        self._last: dict[int, float] = {}
        self._collects = 0.0
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})

    @contextmanager
    def looking(self) -> Iterator[None]:
        """From the main thread, which alone takes signals."""
        before = time.process_time()
        handler = signal.signal(signal.SIGPROF, self._look)
        gc.callbacks.append(self._collected)
        self._last = dict(_used())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            gc.callbacks.remove(self._collected)
            signal.signal(signal.SIGPROF, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            self.total += time.process_time() - before

    def _look(self, _: int, frame: FrameType | None) -> None:
        stacks = sys._current_frames()
        if frame is not None:
            stacks[threading.get_ident()] = frame
        for thread, used in _used():
            spent = used - self._last.get(thread, 0.0)
            self._last[thread] = used
            if spent > 0 and thread in stacks:
                for name in self._placed(stacks[thread]):
                    self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collects = time.thread_time()
            return
        spent = time.thread_time() - self._collects
        self.collecting += spent
        thread = threading.get_ident()
        self._last[thread] = self._last.get(thread, 0.0) + spent


def _used() -> Iterator[tuple[int, float]]:
    """Each thread with the processor's seconds that it has used."""
    for thread in threading.enumerate():
        if thread.ident is not None:
            try:
                yield thread.ident, time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            except OSError:
                continue  # it has ended meanwhile
