"""The lease actor: all that this host says of its scopes, folded over the project's line, one commit each.

Other processes do the same with the same file; the commit's ``BEGIN IMMEDIATE`` puts all of them in one
order. Nothing is read or written before the first mutable work asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import msgspec

from custodes.actors import Actor, ActorError, ActorRef, BatchActor, Message
from custodes.store import Connection, Database, StoreError, StoreLocked
from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.writers.lease import HEARTBEAT_S
from custodes.supervision.writers.lease_fold import Beat, Held, InTheWay, LeaseFold, Release, Take
from custodes.supervision.writers.lease_table import (
    delete_leases,
    last_number,
    load_leases,
    save_last_number,
    save_leases,
)

logger = logging.getLogger("custodes.scopes")

WAIT_S = 1.0
"""How long an ask may wait for other writers of the file, in seconds."""
LAST_WAIT_S = 5.0
"""The same for what is still owed to the file when the actor stops."""


class _Retry(msgspec.Struct, Message[None], frozen=True):
    """To itself: write what is owed."""


class LeaseActor(BatchActor):
    """``database`` and ``now`` are called for each batch; ``heart`` is told of the first lease.

    An error of the store is no crash: a take is answered with it, and a release is kept and written before
    anything else, at the next batch or at the stop at the latest.
    """

    mailbox_size = 16_384

    def __init__(
        self,
        database: Callable[[], Database],
        now: Callable[[], Now],
        heart: Callable[[], ActorRef],
        wait_s: float = WAIT_S,
    ) -> None:
        self._database = database
        self._now = now
        self._heart = heart
        self._wait_s = wait_s
        self._owed: list[Release] = []
        self._waiting: set[str] = set()
        self._beating = False

    async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[Any]:
        batch = [*self._owed, *(message for message in messages if not isinstance(message, _Retry))]
        if not batch:
            return [None] * len(messages)
        again = all(isinstance(message, Take) and message.id in self._waiting for message in batch)
        try:
            answers = await fold_and_commit(
                self._database(), batch, self._now, self._wait_s, read_first=again
            )
        except StoreError as error:
            logger.warning("%d messages on scopes could not be written: %s", len(batch), error)
            self._owed = [message for message in batch if isinstance(message, Release)]
            if self._owed and isinstance(error, StoreLocked):
                with suppress(ActorError):  # it stops: on_stop writes them
                    self.context.ref.tell(_Retry())  # which waits for the writer again: no busy loop
            return [None if isinstance(message, _Retry) else error for message in messages]
        self._note(batch, answers)
        answered = iter(answers[len(self._owed) :])
        self._owed = []
        return [None if isinstance(message, _Retry) else next(answered) for message in messages]

    async def on_stop(self, reason: str) -> None:  # noqa: ARG002 - whatever the reason
        if self._owed:
            try:
                await fold_and_commit(self._database(), self._owed, self._now, LAST_WAIT_S)
            except StoreError as error:
                logger.error(  # noqa: TRY400 - the words say it
                    "%d scopes could not be released (%s); `cos scopes list` shows them",
                    len(self._owed),
                    error,
                )

    def _note(self, batch: Sequence[Message[Any]], answers: Sequence[Any]) -> None:
        for message, answer in zip(batch, answers, strict=True):
            match message, answer:
                case Take(), InTheWay():
                    self._waiting.add(message.id)
                case Take(), Held():
                    self._waiting.discard(message.id)
                    if not self._beating:
                        self._beating = True
                        with suppress(ActorError):  # the tree stops
                            self._heart().tell(Beat())
                case Release(), _:
                    self._waiting.discard(message.id)
                case Beat(), count:
                    self._beating = count > 0


class HeartActor(Actor):
    """Lets the heart beat from the first lease of a process to its last."""

    def __init__(self, leases: Callable[[], ActorRef]) -> None:
        self._leases = leases

    async def receive(self, message: Beat) -> None:
        while True:
            await anyio.sleep(HEARTBEAT_S)
            try:
                count = await self._leases().ask(message)
            except ActorError:  # it restarts, and then this one does, too
                return
            if count == 0:
                return


async def fold_and_commit(
    database: Database,
    messages: Sequence[Message[Any]],
    now: Callable[[], Now],
    wait_s: float = WAIT_S,
    *,
    read_first: bool = False,
) -> list[Any]:
    """The answers; what they say stands on the disk once this returns.

    ``read_first`` looks without waiting for a writer, and writes only if something would change.

    :raises StoreError: nothing was written.
    """

    async def look(connection: Connection) -> tuple[LeaseFold, list[Any]]:
        line = {lease.id: lease for lease in await load_leases(connection)}
        fold = LeaseFold(now=now(), owner=this_process(), line=line, last=await last_number(connection))
        return fold, fold.answers(messages)

    async def change(connection: Connection) -> list[Any]:
        fold, answers = await look(connection)
        await delete_leases(connection, fold.ended)
        await save_leases(connection, fold.changed.values())
        await save_last_number(connection, fold.last)
        return answers

    if read_first:
        fold, answers = await database.read(look)
        if not fold.dirty:
            return answers
    return await database.write(change, wait_s)
