"""The lease actor: all that this host says of its scopes, folded over the project's line, one commit each.

Nothing is read or written before the first mutable work asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio

from custodes.actors import Actor, ActorError, ActorRef, Message
from custodes.store import Connection, Database, StoreError
from custodes.supervision.record.clock import Now
from custodes.supervision.record.file_actor import WAIT_S, FileActor, fold_and_save
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


class LeaseActor(FileActor):
    """``heart`` is told of the first lease. Whatever cannot be written is answered with the error."""

    logger = logging.getLogger("custodes.scopes")
    told = (Release,)
    lost = "%d scopes could not be released; `cos scopes list` shows them"

    def __init__(
        self,
        database: Callable[[], Database],
        now: Callable[[], Now],
        heart: Callable[[], ActorRef],
        wait_s: float = WAIT_S,
        owed: list[Message[Any]] | None = None,
    ) -> None:
        super().__init__(database, now, wait_s, owed)
        self._heart = heart
        self._waiting: set[str] = set()
        self._beating = False

    async def write(self, batch: list[Message[Any]], wait_s: float) -> list[Any]:
        again = all(isinstance(message, Take) and message.id in self._waiting for message in batch)
        answers = await fold_and_commit(self._database(), batch, self._now, wait_s, read_first=again)
        self._note(batch, answers)
        return answers

    def unwritten(self, message: Message[Any], error: StoreError) -> StoreError:  # noqa: ARG002 - any
        return error

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
    """The answers; see :func:`fold_and_save`."""

    async def load(connection: Connection) -> LeaseFold:
        line = {lease.id: lease for lease in await load_leases(connection)}
        return LeaseFold(now=now(), owner=this_process(), line=line, last=await last_number(connection))

    _, answers = await fold_and_save(database, messages, load, _save, wait_s, read_first=read_first)
    return answers


async def _save(connection: Connection, fold: LeaseFold) -> None:
    await delete_leases(connection, fold.ended)
    await save_leases(connection, fold.changed.values())
    await save_last_number(connection, fold.last)
