"""A Hub, and somebody who looks at it: pages, documents, the stream of a conversation; edits and cancels."""

from __future__ import annotations

import random
import socket
from typing import Any

import anyio
import anyio.abc
import httpx2

from support.soak.crew import Crew

PAGES = ("/", "/settings", "/adapters", "/runs", "/overseer")
DOCUMENTS = ("/api/settings", "/api/roles", "/api/health", "/api/runs", "/api/asks", "/api/config/adapters")
USUAL = (200, 303, 404, 409, 422)
"""404: what was listed is retained no more. 409: others changed it."""
START_S = 90.0


class Hub:
    """An ``immortal`` one is not killed, so that its growth is seen."""

    def __init__(self, crew: Crew, name: str, *, immortal: bool) -> None:
        self._crew = crew
        self._name = name
        self._immortal = immortal
        self._chance: random.Random = crew.chance(name)
        self._process: anyio.abc.Process | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    async def work(self) -> None:
        """Start it again whenever it has ended."""
        while not self._crew.over:
            self._process, log = await self._crew.start(
                self._name, "hub", "--port", str(self._port), immortal=self._immortal
            )
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._browse)
                    group.start_soon(self._follow)
                    with anyio.move_on_after(self._crew.ends_at - self._crew.begun - self._crew.age):
                        await self._process.wait()
                    if self._process.returncode is not None and not self._hit:
                        self._crew.fault(f"{self._name} ended by itself with {self._process.returncode}")
                    group.cancel_scope.cancel()
            finally:
                await self._crew.ended(self._process)
            self._crew.troubled(log, self._name)

    @property
    def _hit(self) -> bool:
        return self._process is not None and self._process.pid in self._crew.hits

    def _client(self) -> httpx2.AsyncClient:
        # It gives an idle connection up before the server does: so it asks on none that is being closed.
        idle = httpx2.Limits(keepalive_expiry=2)
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self._port}", timeout=30, limits=idle)

    async def _browse(self) -> None:
        async with self._client() as client:
            await self._up(client)
            while True:
                try:
                    await self._one(client)
                except httpx2.TransportError as error:
                    if self._hit:
                        return  # whoever waits for its end starts it again
                    self._crew.fault(f"{self._name} was left alone, and yet: {type(error).__name__}: {error}")
                await anyio.sleep(self._chance.uniform(0.2, 1.5))

    async def _up(self, client: httpx2.AsyncClient) -> None:
        with anyio.move_on_after(START_S):
            while True:
                try:
                    await client.get("/api/session")
                except httpx2.TransportError:
                    await anyio.sleep(0.1)
                else:
                    return
        if not self._hit:
            self._crew.fault(f"{self._name} did not answer within {START_S} s of its start")

    async def _one(self, client: httpx2.AsyncClient) -> None:
        [act] = self._chance.choices(("page", "document", "run", "edit", "cancel"), (35, 25, 20, 15, 5))
        if act == "page":
            await self._ask(client, "GET", self._chance.choice(PAGES))
        elif act == "document":
            await self._ask(client, "GET", self._chance.choice(DOCUMENTS))
        elif act == "edit":
            await self._edit(client)
        else:
            await self._run(client, cancel=act == "cancel")

    async def _run(self, client: httpx2.AsyncClient, *, cancel: bool) -> None:
        conversation = await self._conversation(client)
        if conversation is None:
            return
        named = conversation["conversation"]
        runs = [run["run_id"] for run in conversation["runs"]]
        if cancel and runs:
            await self._ask(client, "POST", f"/api/runs/{self._chance.choice(runs)}/cancel")
        elif runs:
            run = self._chance.choice(runs)
            places = (f"/runs/{run}", f"/api/runs/{run}", f"/conversations/{named}", f"/api/plans/{named}")
            await self._ask(client, "GET", self._chance.choice(places))

    async def _conversation(self, client: httpx2.AsyncClient) -> Any:
        answer = await self._ask(client, "GET", "/api/runs?limit=20")
        found = answer.json().get("conversations") if answer.status_code == 200 else None
        return self._chance.choice(found) if found else None

    async def _edit(self, client: httpx2.AsyncClient) -> None:
        """The immortal one changes a key that nobody else does; and what was written is read back."""
        seconds = self._chance.randint(4, 8)
        key = "ask_seconds" if self._immortal else "max_live"
        answer = await self._ask(client, "PATCH", "/api/settings", {key: seconds})
        if answer.status_code == 200:
            now = (await self._ask(client, "GET", "/api/settings")).json()
            if now["policy"][key] != seconds:
                self._crew.fault(f"{self._name}: a change was lost: {key} is not {seconds}")

    async def _ask(
        self, client: httpx2.AsyncClient, method: str, path: str, body: object = None
    ) -> httpx2.Response:
        headers = {}
        if method != "GET":
            session = (await client.get("/api/session")).json()
            headers["x-csrf-token"] = session["csrf_token"]
        answer = await client.request(method, path, json=body, headers=headers)
        self._crew.done[f"hub {method} {answer.status_code}"] += 1
        if answer.status_code not in USUAL:
            self._crew.fault(f"{self._name}: {method} {path}: {answer.status_code}: {answer.text[-400:]}")
        return answer

    async def _follow(self) -> None:
        """A stream, left and gone on with again and again: its marks only rise."""
        async with self._client() as client:
            while True:
                try:
                    conversation = await self._conversation(client)
                    if conversation is not None:
                        await self._stream(client, conversation["conversation"])
                except httpx2.TransportError:
                    if self._hit:
                        return
                await anyio.sleep(1)

    async def _stream(self, client: httpx2.AsyncClient, conversation: str) -> None:
        mark = ""
        for _ in range(2):
            headers = {"last-event-id": mark} if mark else {}
            place = f"/api/cognition/trace/{conversation}/stream"
            with anyio.move_on_after(self._chance.uniform(0.5, 5)):
                async with client.stream("GET", place, headers=headers) as answer:
                    if answer.status_code not in USUAL:
                        self._crew.fault(f"{self._name}: {place}: {answer.status_code}")
                    async for line in answer.aiter_lines():
                        if line.startswith("id: "):
                            mark = line.removeprefix("id: ")
                            self._crew.done["hub events"] += 1
