"""A person at the command line: looks, edits the settings, clears, cancels, answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from support.soak.crew import Crew

PAUSE_S = (1.0, 4.0)
LOOKS: tuple[tuple[str, ...], ...] = (
    ("runs", "list"),
    ("health", "show"),
    ("scopes", "list"),
    ("supervision", "show", "--health"),
    ("supervision", "explain", "--role", "reviewer"),
    ("doctor",),
    ("overseer", "status"),
    ("overseer", "incidents"),
    ("adapters", "list"),
)


class Operator:
    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._chance: random.Random = crew.chance("operator")

    async def work(self) -> None:
        while not self._crew.over:
            await anyio.sleep(self._chance.uniform(*PAUSE_S))
            [act] = self._chance.choices(
                (self._look, self._edit, self._clear, self._cancel, self._answer, self._off_and_on),
                (30, 25, 10, 15, 18, 2),
            )
            await act()

    async def _look(self) -> None:
        words = self._chance.choice(LOOKS)
        if words == ("overseer", "status"):
            words = (*words, "--config", str(self._crew.place.supervisor))
        await self._crew.cos(" ".join(words[:2]), *words)

    async def _edit(self) -> None:
        """A key that nobody else changes; and what was written is read back."""
        number = self._chance.randint(2, 6)
        policy = self._chance.choice(("next_eligible", "fail_closed", "same_adapter_default"))
        words = ("--max-parallel", str(number), "--fallback-policy", policy)
        ended = await self._crew.cos("set", "supervision", "set", *words)
        if ended.code or ended.hit:
            return
        now = await self._crew.cos("supervision show", "supervision", "show")
        if now.document is not None:
            held = now.document["policy"]
            if (held["max_parallel"], held["fallback_policy"]) != (number, policy):
                self._crew.fault(f"a change was lost: {words} reads {held}")

    async def _clear(self) -> None:
        target = self._chance.choice(("command", "command:frail", "command:look", "asker"))
        await self._crew.cos("clear", "health", "clear", target)

    async def _cancel(self) -> None:
        listed = await self._listed()
        if not listed:
            return
        conversation = self._chance.choice(listed)
        target = conversation["conversation"]
        if conversation["runs"] and self._chance.random() < 0.7:
            target = self._chance.choice(conversation["runs"])["run_id"]
        await self._crew.cos("cancel", "runs", "cancel", target)

    async def _listed(self) -> list[Any]:
        listed = await self._crew.cos("runs list", "runs", "list", "--limit", "10")
        return [] if listed.document is None else listed.document.get("conversations", [])

    async def _answer(self) -> None:
        listed = await self._crew.cos("asks", "runs", "asks")
        if listed.document is not None:
            for ask in listed.document.get("asks", ()):
                word = self._chance.choice(("allow", "allow", "deny"))
                await self._crew.cos("answer", "runs", "answer", ask["id"], word)

    async def _off_and_on(self) -> None:
        await self._crew.cos("disable", "supervision", "disable")
        await anyio.sleep(1)
        act: Callable[..., Awaitable[Any]] = self._crew.cos
        while (await act("enable", "supervision", "enable")).hit:
            pass
