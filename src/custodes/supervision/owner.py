"""The owner: the actor that takes what other processes ask of this host, while its children run.

What is asked stands in the project's file (`requests`). Each look reads the rows addressed to this process,
claims the new ones in one commit, and hands them on: what is claimed belongs to the fan-out it is nested in,
and goes on whatever becomes of this actor. A row about a run that is not this host's is left alone: whoever
wrote it sees for itself that the run has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial

import anyio
import msgspec

from custodes.actors import Actor, Message
from custodes.store import Connection, Database, StoreError, StoreLocked
from custodes.supervision import records, requests
from custodes.supervision.nest import Nest
from custodes.supervision.nested_work import NestedWork
from custodes.supervision.outcomes import refused
from custodes.supervision.owner_identity import proven_dead, this_process
from custodes.supervision.requests import Request, proven
from custodes.supervision.work import Outcome, Refusal, RefusalCategory, Work

logger = logging.getLogger("custodes.supervision")

LOOK_S = 0.05
"""Between two looks while an attempt runs, in seconds. A look that finds nothing costs some 0.2 ms."""
IDLE_LOOK_S = 0.5
"""The same while children only wait: nobody of theirs can ask, but a person may cancel."""
CHECK_S = 1.0
"""How often it is checked that those who asked still live, in seconds."""
WAIT_S = 5.0
"""How long a claim or a reply may wait for other writers of the file, in seconds; then it is tried again."""


class Watch(msgspec.Struct, Message[None], frozen=True):
    """Look for requests until no child runs any more."""


class OwnerActor(Actor):
    """``busy`` says whether children run; ``nests`` are those of the attempts that do."""

    def __init__(
        self, database: Callable[[], Database], busy: Callable[[], bool], nests: dict[str, Nest]
    ) -> None:
        self._database = database
        self._busy = busy
        self._nests = nests
        self._checked = float("-inf")
        self.watching = False

    async def on_start(self) -> None:
        if self._busy():  # it was restarted
            self.watch()

    def watch(self) -> None:
        """Begin to look, where it does not yet."""
        if not self.watching:
            self.watching = True
            self.context.ref.tell(Watch())

    async def receive(self, message: Watch) -> None:  # noqa: ARG002 - it says only that it is time
        try:
            while self._busy():
                await self._look()
                await anyio.sleep(LOOK_S if self._nests else IDLE_LOOK_S)
        finally:
            self.watching = False

    async def _look(self) -> None:
        database = self._database()
        try:
            found = await database.read(partial(requests.open_for, owner=this_process()))
            if found:
                await self._take(database, found)
        except StoreLocked as error:
            logger.warning("requests of children wait: %s", error)
        except StoreError:
            logger.exception("requests of children cannot be read")

    async def _take(self, database: Database, found: Collection[Request]) -> None:
        now = anyio.current_time()
        check = now >= self._checked + CHECK_S
        if check:
            self._checked = now
        wanted: list[Request] = []
        for request in found:
            nest = self._nests.get(request.run_id)
            if nest is None:
                continue
            if request.status == "asked":
                if proven(request, nest.token):
                    wanted.append(request)
                else:
                    await self._refuse(request, "auth", "its proof is not that of a process of the run")
            elif not nest.knows(request.id):
                await self._refuse(request, "unavailable", "its owner was restarted; nothing was started")
            elif request.status == "withdrawn":
                nest.withdraw(request.id, "whoever asked for it wants it no more")
            elif check and proven_dead(request.client):
                nest.withdraw(request.id, "the process that asked for it has died")
        if wanted:
            await self._start(database, wanted)

    async def _start(self, database: Database, wanted: Collection[Request]) -> None:
        async def claim(connection: Connection) -> tuple[list[Request], set[str]]:
            claimed = await requests.claim(connection, [request.id for request in wanted])
            used = {each.id for each in claimed if await records.of_run(connection, each.id)}
            return claimed, used

        claimed, used = await database.write(claim, WAIT_S)
        for request in claimed:
            nest = self._nests.get(request.run_id)
            if nest is None or nest.closed:
                await self._refuse(request, "unavailable", "the run that it belongs to has ended")
            elif request.id in used:
                await self._refuse(request, "invalid", "its id is that of another run")
            else:
                try:
                    ask = msgspec.json.decode(request.body, type=NestedWork)
                except (msgspec.DecodeError, ValueError, TypeError) as error:
                    await self._refuse(request, "invalid", f"it cannot be read: {error}")
                    continue
                nest.start(request.id, ask, partial(self._reply, request.id))

    async def _refuse(self, request: Request, category: RefusalCategory, reason: str) -> None:
        try:
            work = msgspec.json.decode(request.body, type=NestedWork).work
        except (msgspec.DecodeError, ValueError, TypeError):
            work = Work(role="", prompt="")
        refusal = Refusal(category=category, reason=f"nested work was refused: {reason}")
        await self._reply(request.id, refused(request.id, work, refusal))

    async def _reply(self, request_id: str, outcome: Outcome) -> None:
        """Hand it over; a file that cannot be written is tried until it can, or this host ends."""
        reply = msgspec.json.encode(msgspec.structs.replace(outcome, native=None)).decode()
        answer = partial(requests.answer, request_id=request_id, reply=reply)
        while True:
            try:
                await self._database().write(answer, WAIT_S)
            except StoreLocked as error:
                logger.warning("the reply to %s waits: %s", request_id, error)
            except StoreError:
                logger.exception("the reply to %s is lost", request_id)
                return
            else:
                return
