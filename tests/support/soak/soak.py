"""All of it at once, for so long; then the end, after which nothing may be left."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from support.health_provider import HealthProvider, health_provider
from support.soak.agent import Agent
from support.soak.browser import Hub
from support.soak.crew import Crew
from support.soak.growth import Growth
from support.soak.hosts import Host
from support.soak.killer import Killer
from support.soak.operator import Operator
from support.soak.overseer import Overseer
from support.soak.program import MARK, Deed
from support.soak.project import WATCHED, build
from support.soak.watch import Watch

SETTLED_S = 30.0
"""How long after the end of everything something may still be ending."""
LAST = Deed(
    key="last", role="reviewer", model="look", seconds=0, end="well", leaves=[], scope=[], tool=False, nest=[]
)


class Soak:
    def __init__(self, crew: Crew, providers: list[HealthProvider]) -> None:
        self.crew = crew
        self.watch = Watch(crew)
        self.growth = Growth(crew)
        self._surfaces = (
            Host(crew, "host-1"),
            Host(crew, "host-2"),
            Agent(crew, "agent", immortal=False),
            Agent(crew, "agent-spared", immortal=True),
            Hub(crew, "hub", immortal=False),
            Hub(crew, "hub-spared", immortal=True),
            Overseer(crew, providers),
            Operator(crew),
            Killer(crew),
            self.watch,
            self.growth,
        )

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for surface in self._surfaces:
                group.start_soon(surface.work)
        await self._end()

    async def _end(self) -> None:
        """One more start recovers what the dead left; after it nothing of them may be there."""
        for words in (("supervision", "enable"), ("health", "clear", "command")):
            await self.crew.cos("at the end", *words)
        last = ("dispatch", "--role", "reviewer", "--model", "look", "--on", "command", "--wait", "15")
        ended = await self.crew.cos("at the end", *last, f"{MARK}{json.dumps(LAST)}")
        if ended.code != 0:
            self.crew.fault(f"at the end nothing runs any more: {ended.document}")
        deadline = time.monotonic() + SETTLED_S
        while self.watch.standing and time.monotonic() < deadline:
            await anyio.to_thread.run_sync(self.watch.look)
            await anyio.sleep(0.5)
        await anyio.to_thread.run_sync(lambda: self.watch.look(patience=False))
        if (await self.crew.cos("at the end", "doctor")).code != 0:
            self.crew.fault("at the end `cos doctor` finds something wrong")
        self.growth.judge()

    def told(self) -> Iterator[str]:
        """What was done, for people."""
        yield f"{self.crew.age:.0f} s, {self.watch.looks} looks"
        for what, times in sorted(self.crew.done.items()):
            yield f"{times:6d} {what}"
        yield from self.growth.told()


@contextmanager
def soaking(folder: Path, *, seed: int, seconds: float) -> Iterator[Soak]:
    """A soak in an empty folder, yet to `run`."""
    with ExitStack() as stack:
        providers = [stack.enter_context(health_provider("look", "one")) for _ in WATCHED]
        place = build(folder, {name: each.url for name, each in zip(WATCHED, providers, strict=True)})
        yield Soak(Crew(place, seed, seconds), providers)
