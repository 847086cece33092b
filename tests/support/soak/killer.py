"""Signals a random one of the soak's own processes every few seconds: most are killed, some are stopped for a
while, some are asked to end."""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress

import anyio
import psutil

from support.soak.crew import Crew

PAUSE_S = (1.0, 6.0)
STOPPED_S = (0.5, 6.0)
YOUNG_S = 1.0
"""A process that still starts has not said yet what a polite signal means to it."""
RUN = "CUSTODES_RUN"
LONG = ("run", "mcp", "hub", "overseer", "dispatch")
"""Commands that are at work for a while, each a kind of its own."""
POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Killer:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._chance: random.Random = crew.chance("killer")

    async def work(self) -> None:
        async with anyio.create_task_group() as stops:
            while not self._crew.over:
                await anyio.sleep(self._chance.uniform(*PAUSE_S))
                by_kind: dict[str, list[psutil.Process]] = {}
                for process in psutil.Process().children(recursive=True):
                    if process.pid not in self._crew.immortal and (kind := kind_of(process)):
                        by_kind.setdefault(kind, []).append(process)
                if not by_kind:
                    continue
                kind = self._chance.choice(sorted(by_kind))  # the kind first: programs are the most, by far
                victim = self._chance.choice(by_kind[kind])
                number = self._number(victim, kind)
                if self._sent(victim, kind, number) and number is signal.SIGSTOP:
                    stops.start_soon(self._go_on, victim, self._chance.uniform(*STOPPED_S))

    def _number(self, victim: psutil.Process, kind: str) -> signal.Signals:
        [how] = self._chance.choices(("kill", "stop", "polite"), (60, 25, 15))
        old = _age(victim) >= YOUNG_S
        if how == "polite" and old and kind not in ("keeper", "program"):
            return self._chance.choice(POLITE)
        return signal.SIGSTOP if how == "stop" else signal.SIGKILL

    def _sent(self, victim: psutil.Process, kind: str, number: signal.Signals) -> bool:
        try:
            run = victim.environ().get(RUN)
            self._crew.hits[victim.pid] = number.name
            if run is not None:
                self._crew.struck.add(run)
            victim.send_signal(number)
        except psutil.Error:
            return False
        self._crew.done[f"{number.name} {kind}"] += 1
        return True

    async def _go_on(self, victim: psutil.Process, seconds: float) -> None:
        try:
            await anyio.sleep(seconds)
        finally:
            with suppress(psutil.Error):  # it was killed meanwhile
                victim.send_signal(signal.SIGCONT)


def kind_of(process: psutil.Process) -> str:
    """What a process of the soak is; empty for one that is gone, and for what nobody would signal."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return ""
    text = " ".join(words)
    if "_keeper" in text:
        return "keeper"
    if "program.py" in text:
        return "program"
    places = [number for number, word in enumerate(words[:3]) if word.endswith("/cos")]
    if not places or len(words) <= places[0] + 1:
        return ""
    command = words[places[0] + 1]
    return f"cos {command}" if command in LONG else "a short command"


def _age(process: psutil.Process) -> float:
    try:
        return time.time() - process.create_time()
    except psutil.Error:
        return 0.0
