"""The health actor: all that is said of the project's pools goes through its mailbox.

What waits there is one batch: one read, one fold of the breaker's rule over it, and one commit where
something changed; the replies go out after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio

from custodes.actors import ActorError, ActorRef, Message
from custodes.store import Connection, Database, StoreError
from custodes.supervision.pools.admission import (
    Admission,
    Admit,
    Clear,
    Confirm,
    Record,
    Refused,
    Settle,
    Snapshot,
    Traced,
    Unavailable,
    Withdraw,
)
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.health_fold import Fold
from custodes.supervision.pools.pool_table import load_pools, load_unavailable, save_pools, save_unavailable
from custodes.supervision.record import records
from custodes.supervision.record.clock import Now
from custodes.supervision.record.file_actor import LAST_WAIT_S, WAIT_S, FileActor, fold_and_save
from custodes.supervision.record.owner_identity import proven_dead, this_process
from custodes.supervision.writers.lease_table import held_among


class HealthActor(FileActor):
    """An ask that cannot be folded is refused as unavailable (fail closed)."""

    # Above it the fold keeps the interpreter for longer than the host's loop should wait (bench/health.py).
    batch_size = 128
    logger = logging.getLogger("custodes.health")
    told = (Settle, Confirm, Withdraw, Record)
    lost = "%d rows were not written: refusals are missing on record, and what ran is closed as unknown later"

    def __init__(
        self,
        database: Callable[[], Database],
        now: Callable[[], Now],
        wait_s: float = WAIT_S,
        owed: list[Message[Any]] | None = None,
    ) -> None:
        super().__init__(database, now, wait_s, owed)
        self._sick: set[str] = set()
        """Pools last seen sick: an ask for nothing else is probably refused, and so is read first."""

    async def write(self, batch: list[Message[Any]], wait_s: float) -> list[Any]:
        answers, seen = await fold_and_commit(
            self._database(), batch, self._now, wait_s, read_first=self._likely_unchanged(batch)
        )
        for pool in seen:
            (self._sick.discard if pool.deadline is None else self._sick.add)(pool.name)
        return answers

    def unwritten(self, message: Message[Any], error: StoreError) -> Any:
        match message:
            case Admit():
                return Refused(
                    unavailable=tuple(
                        Unavailable(
                            adapter=candidate.adapter,
                            pool=candidate.pool,
                            category="unavailable",
                            reason=f"the health of {candidate.pool} cannot be known: {error}",
                        )
                        for candidate in message.candidates
                    )
                )
            case Settle():
                return False
            case Clear() | Snapshot():
                return error
            case _:
                return None

    def _likely_unchanged(self, batch: list[Message[Any]]) -> bool:
        return all(
            isinstance(message, Snapshot)
            or (isinstance(message, Admit) and all(each.pool in self._sick for each in message.candidates))
            for message in batch
        )


async def admit(health: ActorRef, ask: Admit) -> Admission | Refused:
    """Ask for a ticket so that none is ever lost.

    A cancelled ask may have been granted, and its answer dropped: it is withdrawn then, and the pool and the
    row are as if the caller had cancelled its run at once.

    :raises ActorError: the actor cannot be asked; nothing was granted for good.
    """
    try:
        return await health.ask(ask)
    except BaseException:
        await withdraw(health, ask)
        raise


async def withdraw(health: ActorRef, ask: Admit) -> None:
    """Give back what an ask was granted and nothing was done with, also from a task that is being cancelled.

    Waited for: the tree may be about to end, and what only waits in the mailbox ends with it.
    """
    with anyio.move_on_after(LAST_WAIT_S, shield=True), suppress(ActorError):
        await health.ask(Withdraw(ask.id))


async def settle(health: ActorRef, message: Settle) -> bool:
    """Tell the end of an attempt, also from a task that is being cancelled.

    :returns: whether it is on the disk; if not, it will be before anything else is written.
    :raises ActorError: the actor has ended; its owner's rows are closed with it, by recovery.
    """
    try:
        return await health.ask(message)
    except BaseException:
        health.tell(message)  # the ask was withdrawn, or was heard: only the first of the two counts
        raise


async def fold_and_commit(
    database: Database,
    messages: Sequence[Message[Any]],
    now: Callable[[], Now],
    wait_s: float = WAIT_S,
    *,
    read_first: bool = False,
) -> tuple[list[Any], list[Pool]]:
    """The answers, and every pool that was looked at; see :func:`fold_and_save`."""

    async def load(connection: Connection) -> Fold:
        return await _read(connection, messages, now())

    fold, answers = await fold_and_save(database, messages, load, _save, wait_s, read_first=read_first)
    return answers, list(fold.pools.values())


async def _save(connection: Connection, fold: Fold) -> None:
    await save_pools(connection, fold.changed_pools.values())
    await save_unavailable(connection, fold.changed_unavailable.items())
    await records.insert(connection, fold.opened.values())
    await records.update(connection, fold.changed_rows.values())


async def _read(connection: Connection, messages: Sequence[Message[Any]], now: Now) -> Fold:
    attempts: set[str] = set()
    scope_leases: set[str] = set()
    pools: set[str] = set()
    adapters: set[str] = set()
    everything = False
    for message in messages:
        match message:
            case Admit():
                if message.scope_lease is not None:
                    scope_leases.add(message.scope_lease)
                pools.update(candidate.pool for candidate in message.candidates)
                adapters.update(candidate.adapter for candidate in message.candidates)
            case Confirm() | Settle() | Traced():
                attempts.add(message.ticket.attempt)
                pools.add(message.ticket.pool)
            case Withdraw():
                attempts.add(message.id)
            case Clear() | Snapshot():
                everything = True
    rows = {row.id: row for row in await records.by_id(connection, attempts)} if attempts else {}
    pools.update(row.pool for row in rows.values() if row.pool is not None)
    adapters.update(row.adapter for row in rows.values() if row.adapter is not None)
    stored = await load_pools(connection, None if everything else pools) if everything or pools else {}
    marks = (
        await load_unavailable(connection, None if everything else adapters) if everything or adapters else {}
    )
    held = await held_among(connection, scope_leases) if scope_leases else frozenset()
    leases = [pool.lease for pool in stored.values() if pool.lease is not None]
    return Fold(
        now=now,
        owner=this_process(),
        pools=stored,
        unavailable=marks,
        rows=rows,
        dead_leases=frozenset(lease.id for lease in leases if proven_dead(lease.owner)),
        lost_scopes=frozenset(scope_leases - held),
    )
