"""What other processes write and an overseer is to hear of: the breaker's pools, and switches by hand."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import anyio
import msgspec

from custodes.actors import Actor, ActorError, ActorRef, Message, handles
from custodes.overseer.by_hand import SwitchOrder, SwitchReply
from custodes.store import Connection, Database, StoreError, json_text
from custodes.supervision.asks import requests
from custodes.supervision.asks.requests import Request
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.pool_table import load_pools
from custodes.supervision.record.owner_identity import this_process

logger = logging.getLogger("custodes.overseer")

LOOK_S = 1.0
"""How often it is looked whether another process has written to the database (a counter in memory)."""
WAIT_S = 5.0
"""How long a claim may wait for other writers of the file, in seconds; then it is tried again."""
REPLY_S = 30.0
"""How long a reply may wait for them, in seconds."""


class Turn(msgspec.Struct, Message[None], frozen=True):
    """To oneself: the next one."""


class PoolsSeen(msgspec.Struct, Message[bool], frozen=True):
    """The pools as they stand. Replied with whether that could be kept."""

    pools: dict[str, Pool]


class SwitchAsked(msgspec.Struct, Message[SwitchReply], frozen=True):
    """A person's order. Replied with what came of it."""

    order: SwitchOrder


class Look(Actor):
    """Looks at first, and then whenever another process has written to the database."""

    what: str

    def __init__(self, database: Database, desk: Callable[[], ActorRef]) -> None:
        self._database = database
        self._desk = desk

    async def on_start(self) -> None:
        self.context.ref.tell(Turn())

    @handles(Turn)
    async def turn(self, _: Turn) -> None:
        version: Any = None
        while True:
            try:
                if (found := await self._database.read(_version)) != version:
                    version = found if await self.look() else None
            except StoreError as error:
                logger.warning("%s cannot be looked at: %s", self.what, error)
            await anyio.sleep(LOOK_S)

    @abstractmethod
    async def look(self) -> bool:
        """Whether all was taken in; else it looks again soon. :raises StoreError: it cannot look."""


class PoolLook(Look):
    """Tells the desk of the pools as they stand."""

    what = "the pools"

    def __init__(self, names: Iterable[str], database: Database, desk: Callable[[], ActorRef]) -> None:
        super().__init__(database, desk)
        self._names = frozenset(names)
        self._seen: dict[str, Pool] | None = None

    async def look(self) -> bool:
        pools = await self._database.read(lambda c: load_pools(c, self._names))
        if pools != self._seen and await self._desk().ask(PoolsSeen(pools)):
            self._seen = pools
        return pools == self._seen


class SwitchLook(Look):
    """Has the desk switch what persons ask for, and answers them. An order is claimed before it is carried
    out, so it is once at most; one whose claimer did not live to answer it is answered so."""

    what = "the switches by hand"

    async def look(self) -> bool:
        mine = partial(requests.open_for, owner=this_process())
        found = [each for each in await self._database.read(mine) if each.kind == "switch"]
        for request in found:
            if request.status != "asked":
                why = "the overseer had to begin anew while it switched; `cos overseer status` shows its end"
                await self._reply(request, SwitchReply(kind="failed", message=why))
        asked = [request.id for request in found if request.status == "asked"]
        claimed = await self._database.write(partial(requests.claim, ids=asked), WAIT_S) if asked else []
        for request in claimed:
            await self._reply(request, await self._switched(request))
        return True

    async def _switched(self, request: Request) -> SwitchReply:
        try:
            order = msgspec.json.decode(request.body, type=SwitchOrder)
            return await self._desk().ask(SwitchAsked(order))
        except anyio.get_cancelled_exc_class():
            why = "the overseer was ended while it switched; the next one completes or undoes it"
            with anyio.move_on_after(WAIT_S, shield=True):
                await self._reply(request, SwitchReply(kind="busy", message=why))
            raise
        except msgspec.DecodeError as error:
            return SwitchReply(kind="failed", message=f"the overseer that runs cannot read it: {error}")
        except ActorError as error:
            return SwitchReply(kind="failed", message=f"the overseer failed while it switched: {error}")

    async def _reply(self, request: Request, reply: SwitchReply) -> None:
        """Hand it over, within :data:`REPLY_S`; whoever asked then sees for themselves."""
        text = json_text(reply)
        answer = partial(requests.answer, request_id=request.id, reply=text)
        try:
            await self._database.write(answer, REPLY_S)
        except StoreError as error:
            logger.error("the reply to %s is lost: %s", request.id, error)  # noqa: TRY400 - the words say it


async def _version(connection: Connection) -> int:
    """A number that changes when another connection has written. It is the reader's own, so ask it there."""
    ((found,),) = await connection.execute_fetchall("PRAGMA data_version")
    return int(found)
