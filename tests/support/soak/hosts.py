"""A host in a loop: ``cos run`` of a new plan, or of one cut short; and resolving what is uncertain."""

from __future__ import annotations

import json
import random
from typing import Any

import anyio

from support.soak.crew import Crew
from support.soak.plans import a_plan
from support.soak.record import plan_runs

PAUSE_S = (0.2, 2.0)


class Host:
    def __init__(self, crew: Crew, name: str) -> None:
        self._crew = crew
        self._name = name
        self._chance: random.Random = crew.chance(name)
        self._plans = 0

    async def work(self) -> None:
        while not self._crew.over:
            await anyio.sleep(self._chance.uniform(*PAUSE_S))
            left = plan_runs(self._crew.place.database, self._crew.fault)
            if left and self._chance.random() < 0.5:
                await self._go_on(self._chance.choice(left))
            else:
                await self._begin()

    async def _begin(self) -> None:
        self._plans += 1
        name = f"{self._name}-{self._plans}"
        file = self._crew.place.folder / f"{name}.yaml"
        file.write_text(json.dumps(a_plan(self._chance, name)))
        ended = await self._crew.cos("run", "run", str(file))
        self._judge(ended.document, name)

    async def _go_on(self, run: str) -> None:
        """Of either host's: two that resume one plan at once is what happens to people, too."""
        ended = await self._crew.cos("resume", "run", "--resume", run)
        self._judge(ended.document, run)
        shown = await self._crew.cos("show", "runs", "show", run)
        if isinstance(shown.document, dict):
            for step in shown.document.get("uncertain", ()):
                await self._resolve(run, step)

    async def _resolve(self, run: str, step: str) -> None:
        word = self._chance.choice(("done", "failed"))
        if word == "failed":  # counted before it is said: whoever is killed in between has lied to nobody
            self._crew.excused[f"{run}/{step}"] += 1
        summary = ("--summary", "looked at") if word == "done" else ()
        ended = await self._crew.cos("resolve", "runs", "resolve", run, step, word, *summary)
        if word == "failed" and ended.code and not ended.hit:
            self._crew.excused[f"{run}/{step}"] -= 1

    def _judge(self, report: Any, what: str) -> None:
        if isinstance(report, dict) and "outcomes" in report:
            for outcome in report["outcomes"]:
                self._crew.done[f"outcome {outcome['status']}"] += 1
            if (spent := report.get("spent")) is not None:
                for limit in ("children", "tokens"):
                    if spent[limit].get("overrun"):
                        self._crew.fault(f"budget: {what} overran its {limit}: {spent[limit]}")
