"""An agent that works through ``cos mcp``, with the SDK's own client: dispatches, fan-outs, and the rest."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters
from support.soak.crew import Crew
from support.soak.plans import a_deed, work_of

LONGEST_S = 120.0
PAUSE_S = (0.2, 2.0)


class Agent:
    """An ``immortal`` one's server is not killed, so that its growth is seen."""

    def __init__(self, crew: Crew, name: str, *, immortal: bool) -> None:
        self._crew = crew
        self._name = name
        self._immortal = immortal
        self._chance: random.Random = crew.chance(name)
        self._calls = 0

    async def work(self) -> None:
        place = self._crew.place
        while not self._crew.over:
            log = place.logs / f"{self._calls:06d}-{self._name}"
            told = log.with_suffix(".pid")
            told.write_text("0")
            server = StdioServerParameters(
                command="/bin/sh",
                args=["-c", 'echo $$ > "$1"; exec "$2" mcp', "sh", str(told), place.cos],
                env=place.environment,
                cwd=place.project,
            )
            try:
                with log.with_suffix(".err").open("w") as err:
                    async with Client(stdio_client(server, errlog=err)) as client:
                        if self._immortal:
                            self._crew.immortal.add(int(told.read_text()))
                        await self._converse(client)
            except Exception as error:  # whatever a client meets whose server is killed
                if int(told.read_text()) not in self._crew.hits:
                    self._crew.fault(f"{self._name}: the server was left alone, and yet: {_words(error)}")
                self._crew.done["mcp server lost"] += 1
                await anyio.sleep(0.5)
            if not self._crew.troubled(log, f"the MCP server of {self._name}"):
                log.with_suffix(".err").unlink()

    async def _converse(self, client: Client) -> None:
        talk = self._chance.randint(5, 30) if not self._immortal else 10**9
        for _ in range(talk):
            if self._crew.over:
                return
            await self._chosen()(client)
            await anyio.sleep(self._chance.uniform(*PAUSE_S))

    def _chosen(self) -> Callable[[Client], Awaitable[None]]:
        [act] = self._chance.choices(
            (self._dispatch, self._fan_out, self._leave, self._look, self._change, self._give_up),
            (25, 20, 12, 25, 10, 8),
        )
        return act

    def _work(self) -> dict[str, Any]:
        self._calls += 1
        deed = a_deed(self._chance, f"{self._name}-{self._calls}")
        return {**work_of(deed), "model": deed["model"]}

    async def _dispatch(self, client: Client) -> None:
        await self._call(client, "cos_dispatch", wait=3.0, **self._work())

    async def _fan_out(self, client: Client) -> None:
        children = [self._work() for _ in range(self._chance.randint(2, 5))]
        budget = {"children": self._chance.randint(1, 6), "wall_seconds": 20}
        await self._call(client, "cos_fan_out", children=children, budget=budget)

    async def _give_up(self, client: Client) -> None:
        with anyio.move_on_after(self._chance.uniform(0.1, 2.0)):
            await self._fan_out(client)

    async def _leave(self, client: Client) -> None:
        found = await self._call(client, "cos_asks", action="list")
        for ask in (found or {}).get("asks", ()):
            await self._call(
                client,
                "cos_asks",
                action="answer",
                ask=ask["id"],
                answer=self._chance.choice(("allow", "allow", "deny")),
            )

    async def _look(self, client: Client) -> None:
        tool = self._chance.choice(("cos_health", "cos_trace", "cos_supervision_config", "cos_role_info"))
        more = {"action": "show"} if tool in ("cos_health", "cos_supervision_config") else {}
        await self._call(client, tool, **more)

    async def _change(self, client: Client) -> None:
        """Of the policy, a key that nobody else changes; and what was written is read back."""
        seconds = self._chance.randint(5, 12)
        if self._immortal:
            await self._call(
                client, "cos_supervision_config", action="set", cooldown={"maximum_seconds": seconds}
            )
            now = await self._call(client, "cos_supervision_config", action="show")
            if now is not None and now["policy"]["cooldown"]["maximum_seconds"] != seconds:
                self._crew.fault(f"a change was lost: cooldown.maximum_seconds is not {seconds}: {now}")
        else:
            await self._call(client, "cos_health", action="clear", target="command")

    async def _call(self, client: Client, tool: str, **arguments: Any) -> Any:
        with anyio.move_on_after(LONGEST_S) as late:
            result = await client.call_tool(tool, arguments)
        if late.cancelled_caught:
            self._crew.fault(f"{self._name}: {tool} did not end within {LONGEST_S} s: {arguments}")
            return None
        self._crew.done[f"mcp {tool}: {'error' if result.is_error else 'answer'}"] += 1
        if result.is_error:
            self._crew.done[f"mcp error {_kind(result.structured_content)}"] += 1
            return None
        return result.structured_content


def _kind(document: Any) -> str:
    error = document["error"]
    return f"{error['kind']}: {error['message'][:80]}"


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
