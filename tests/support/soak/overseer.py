"""``cos overseer run``, started again whenever it has ended; its providers fall ill and recover."""

from __future__ import annotations

import random

import anyio

from support.health_provider import HealthProvider
from support.soak.crew import Crew

STATUSES = (200, 200, 200, 429, 500, 402, 0)
PAUSE_S = (2.0, 12.0)


class Overseer:
    """Spared in the second half, so that its growth is seen."""

    def __init__(self, crew: Crew, providers: list[HealthProvider]) -> None:
        self._crew = crew
        self._providers = providers
        self._chance: random.Random = crew.chance("overseer")

    async def work(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._flip)
            while not self._crew.over:
                await self._watch()
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        spared = self._crew.age > (self._crew.ends_at - self._crew.begun) / 2
        process, log = await self._crew.start(
            "overseer", "overseer", "run", "--config", str(self._crew.place.supervisor), immortal=spared
        )
        try:
            with anyio.move_on_after(self._crew.ends_at - self._crew.begun - self._crew.age):
                await process.wait()
            if process.returncode is not None and process.pid not in self._crew.hits:
                error = log.with_suffix(".err").read_text()[-600:]
                self._crew.fault(f"the overseer ended by itself with {process.returncode}: {error}")
        finally:
            await self._crew.ended(process)
        self._crew.troubled(log, "the overseer")

    async def _flip(self) -> None:
        while True:
            await anyio.sleep(self._chance.uniform(*PAUSE_S))
            provider = self._chance.choice(self._providers)
            provider.status = self._chance.choice(STATUSES)
            self._crew.done[f"provider {provider.status}"] += 1
