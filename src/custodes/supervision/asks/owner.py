"""The owner: the actor that takes what other processes ask of this host, while its children run.

What is asked stands in the project's file (`requests`). Each look reads the rows addressed to this process,
claims the new ones in one commit, and hands them on: what is claimed belongs to the fan-out it is nested in,
and goes on whatever becomes of this actor. A row about a run that is not this host's is left alone: whoever
wrote it sees for itself that the run has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import anyio
import msgspec
from anyio.abc import TaskGroup

from custodes.actors import Actor, Message
from custodes.store import Database, StoreError, StoreLocked
from custodes.supervision.asks import requests
from custodes.supervision.asks.requests import AnswerAsk, Answered, CancelAsk, Request, proven
from custodes.supervision.live import Live
from custodes.supervision.nesting.nested_work import NestedWork
from custodes.supervision.outcomes import refused
from custodes.supervision.record import records
from custodes.supervision.record.owner_identity import proven_dead, this_process
from custodes.supervision.work import Outcome, Refusal, RefusalCategory, Work

logger = logging.getLogger("custodes.supervision")

LOOK_S = 0.05
"""Between two looks while an attempt runs, in seconds. A look that finds nothing costs some 0.2 ms."""
IDLE_LOOK_S = 0.5
"""The same while children only wait: nobody of theirs can ask, but a person may cancel."""
CHECK_S = 1.0
"""How often it is checked that those who asked still live, in seconds."""
WAIT_S = 5.0
"""How long a claim may wait for other writers of the file, in seconds; then it is tried again."""
REPLY_S = 30.0
"""How long a reply may wait for them, in seconds."""


class Watch(msgspec.Struct, Message[None], frozen=True):
    """Look for requests until no child runs any more."""


class OwnerActor(Actor):
    """Looks while ``live`` is busy."""

    def __init__(self, database: Callable[[], Database], live: Live) -> None:
        self._database = database
        self._live = live
        self._checked = float("-inf")
        self._blind = False
        """It is on the log already that the file cannot be read."""
        self.watching = False

    async def on_start(self) -> None:
        if self._live.busy:  # it was restarted
            self.watch()

    def watch(self) -> None:
        """Begin to look, where it does not yet."""
        if not self.watching:
            self.watching = True
            self.context.ref.tell(Watch())

    async def receive(self, message: Watch) -> None:  # noqa: ARG002 - it says only that it is time
        try:
            while self._live.busy:  # again, where a child was started while the last cancel was waited for
                async with anyio.create_task_group() as cancels:
                    while self._live.busy:
                        await self._look(cancels)
                        await anyio.sleep(LOOK_S if self._live.nests else IDLE_LOOK_S)
        finally:
            self.watching = False

    async def _look(self, cancels: TaskGroup) -> None:
        database = self._database()
        try:
            found = await database.read(partial(requests.open_for, owner=this_process()))
            now = anyio.current_time()
            check = now >= self._checked + CHECK_S
            if check:
                self._checked = now
            wanted = [request for request in found if await self._wanted(request, check)]
            if wanted:
                claim = partial(requests.claim, ids=[request.id for request in wanted])
                for request in await database.write(claim, WAIT_S):
                    await self._take(request, cancels)
        except StoreLocked as error:
            logger.warning("requests of other processes wait: %s", error)
        except StoreError as error:
            if not self._blind:
                logger.error("requests of other processes cannot be read: %s", error)  # noqa: TRY400 - the words say it
            self._blind = True
        else:
            self._blind = False

    async def _wanted(self, request: Request, check: bool) -> bool:
        """Whether it is new and ours to take. One that was taken is withdrawn where nobody waits for it."""
        if request.kind == "switch":  # the overseer's, where one runs in this process, too
            return False
        if request.kind != "dispatch":
            return request.status == "asked" and self._live.has(request.run_id)
        nest = self._live.nests.get(request.run_id)
        if nest is None:
            return False
        if request.status == "asked":
            if not proven(request, nest.token):
                await self._refuse(request, "auth", "its proof is not that of a process of the run")
            elif proven_dead(request.client):  # its run goes on, and may write in its scope again
                await self._refuse(request, "unavailable", "the process that asked for it has died")
            else:
                return True
        elif not nest.knows(request.id):
            await self._refuse(request, "unavailable", "its owner was restarted; nothing was started")
        elif request.status == "withdrawn":
            nest.withdraw(request.id, "whoever asked for it wants it no more")
        elif check and proven_dead(request.client):
            nest.withdraw(request.id, "the process that asked for it has died")
        return False

    async def _take(self, request: Request, cancels: TaskGroup) -> None:
        try:
            match request.kind:
                case "dispatch":
                    await self._start(request)
                case "cancel":
                    by = msgspec.json.decode(request.body, type=CancelAsk).by
                    cancels.start_soon(self._cancel, request, by)
                case "answer":
                    await self._answer(request, msgspec.json.decode(request.body, type=AnswerAsk))
        except msgspec.DecodeError as error:  # another version's; whoever asked hears that nobody answers
            logger.warning(
                "request %s (%s) of pid %d: %s", request.id, request.kind, request.client.pid, error
            )

    async def _start(self, request: Request) -> None:
        if await self._database().read(partial(records.of_run, run_id=request.id)):
            await self._refuse(request, "invalid", "its id is that of another run")
            return
        try:
            ask = msgspec.json.decode(request.body, type=NestedWork)
        except msgspec.DecodeError as error:
            await self._refuse(request, "invalid", f"it cannot be read: {error}")
            return
        nest = self._live.nests.get(request.run_id)  # looked at last: it may have ended in any wait before
        if nest is None or nest.closed:
            await self._refuse(request, "unavailable", "the run that it belongs to has ended")
            return
        nest.start(request.id, ask, request.client, partial(self._reply_outcome, request.id))

    async def _cancel(self, request: Request, by: str) -> None:
        await self._live.cancel(request.run_id, f"cancelled from elsewhere ({by})")
        await self._reply(request.id, b"{}")

    async def _answer(self, request: Request, ask: AnswerAsk) -> None:
        found = self._live.asks.answer(ask.ask, ask.answer, ask.by)
        if found is None:  # answered a moment ago: its row says what
            await self._reply(request.id, b"null")
            return
        answer, by, first = found
        answered = Answered(ask=ask.ask, answer=answer, by=by, first=first)
        await self._reply(request.id, msgspec.json.encode(answered))

    async def _refuse(self, request: Request, category: RefusalCategory, reason: str) -> None:
        try:
            work = msgspec.json.decode(request.body, type=NestedWork).work
        except msgspec.DecodeError:
            work = Work(role="", prompt="")
        refusal = Refusal(category=category, reason=f"nested work was refused: {reason}")
        await self._reply_outcome(request.id, refused(request.id, work, refusal))

    async def _reply_outcome(self, request_id: str, outcome: Outcome) -> None:
        await self._reply(request_id, msgspec.json.encode(msgspec.structs.replace(outcome, native=None)))

    async def _reply(self, request_id: str, reply: bytes) -> None:
        """Hand it over, within :data:`REPLY_S`; whoever asked then learns from the end of the run."""
        answer = partial(requests.answer, request_id=request_id, reply=reply.decode())
        try:
            await self._database().write(answer, REPLY_S)
        except StoreError as error:
            logger.error("the reply to %s is lost: %s", request_id, error)  # noqa: TRY400 - the words say it
