"""Where the processor's time of a process is seen to go."""

from __future__ import annotations

import gc
import signal
import threading
from types import FrameType

from bench.suite.contender import processor
from bench.suite.sampler import Sampler


def burn(seconds: float) -> None:
    begun = processor()
    while processor() - begun < seconds:
        pass


def in_a_thread(begin: threading.Event, seconds: float) -> None:
    begin.wait()
    burn(seconds)


def placed(frame: FrameType) -> set[str]:
    """The functions of this file on a stack."""
    found = set()
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_filename == __file__:
            found.add(above.f_code.co_name)
        above = above.f_back
    return found


def test_what_burns_is_named_and_the_rest_is_not() -> None:
    sampler = Sampler(placed)
    with sampler.looking():
        burn(0.4)
    assert sampler.seconds["burn"] > 0.5 * sampler.total
    assert "in_a_thread" not in sampler.seconds


def test_another_threads_time_is_its_own() -> None:
    sampler, begin = Sampler(placed), threading.Event()
    thread = threading.Thread(target=in_a_thread, args=(begin, 0.4))
    thread.start()
    with sampler.looking():
        begin.set()
        while thread.is_alive():
            thread.join(0.001)  # the runner's own threads may have taken the signal that would wake it
    assert sampler.seconds["in_a_thread"] > 0.5 * sampler.total


def test_a_collection_of_cycles_is_counted_apart() -> None:
    sampler = Sampler(placed)
    kept: list[list[int]] = [[] for _ in range(300_000)]
    with sampler.looking():
        for _ in range(5):
            gc.collect()
    assert kept
    assert sampler.collecting > 0.5 * sampler.total


def test_signals_and_the_collector_are_left_as_they_were() -> None:
    before, callbacks = signal.getsignal(signal.SIGPROF), list(gc.callbacks)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with Sampler(placed).looking():
        pass
    assert signal.getsignal(signal.SIGPROF) == before
    assert gc.callbacks == callbacks
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
