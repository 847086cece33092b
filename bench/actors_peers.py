"""Pykka, a thread for each actor: the peer of ``bench/actors.py``, in an environment of its own.

python -m bench.actors_peers pykka
"""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

import pykka  # type: ignore[import-not-found]  # the peers'

from bench.suite.contender import Figures, Spent, serve


class Job(pykka.ThreadingActor):  # type: ignore[misc]  # the peers' base
    def on_receive(self, _message: Any) -> None:
        self.stop()


class Echoes(pykka.ThreadingActor):  # type: ignore[misc]  # the peers' base
    def on_receive(self, message: int) -> int:
        return message


def dynamic(count: int) -> Figures:
    spent = Spent()
    while not spent.enough:
        with spent.counting(count):
            refs = []
            for _ in range(count):
                ref = Job.start()
                ref.tell(None)
                refs.append(ref)
            for ref in refs:
                ref.actor_stopped.wait()
    return spent.figures()


def ask(count: int) -> Figures:
    ref = Echoes.start()
    spent = Spent()
    while not spent.enough:
        with spent.counting(count):
            for number in range(count):
                ref.ask(number)
    ref.stop()
    return spent.figures()


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        # From one thread to the next costs up to twice as much across cores; other work decides which it is.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    serve(importlib.metadata.version("pykka"), {"dynamic": dynamic, "ask": ask})
