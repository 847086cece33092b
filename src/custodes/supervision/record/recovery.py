"""What a dead owner left behind: processes are ended, open rows closed as ``unknown``, leases freed.

A row's owner is dead only where that is proven. A surviving process is known by the run id in its
environment, and signalled only as that very process: never by a pid that somebody else has by now.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator

import anyio
import anyio.to_thread
import msgspec
import psutil

from custodes.adapters.port import RUN_VARIABLE
from custodes.store import Connection, Database
from custodes.supervision.asks import requests
from custodes.supervision.asks.permission_table import close_dead, prune_asks
from custodes.supervision.budgets.fan_out_table import prune_fan_outs
from custodes.supervision.plans.checkpoints import prune_plans
from custodes.supervision.pools.breaker import Pool, Settled, Ticket, decide
from custodes.supervision.pools.pool_table import load_pools, save_pools
from custodes.supervision.record import records
from custodes.supervision.record.clock import Now
from custodes.supervision.record.lost_spans import tell_of
from custodes.supervision.record.owner_identity import proven_dead, start_of
from custodes.supervision.record.records import AttemptEnd, AttemptRow, closed
from custodes.supervision.writers.lease import ScopeLease, orphaned
from custodes.supervision.writers.lease_table import delete_leases, load_leases, save_leases

GRACE_S = 2.0
"""Between the request to end and the kill, in seconds."""


class Survivor(msgspec.Struct, frozen=True):
    """A process that carries the run id of a dead owner's attempt. ``started`` is ``owner_identity``'s."""

    pid: int
    started: float
    run_id: str

    def __str__(self) -> str:
        return f"pid {self.pid}"


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was closed. ``ended`` are the processes that were ended for it, ``left`` those that could
    not be: its scope is not free while they live."""

    row: AttemptRow
    ended: tuple[int, ...] = ()
    left: tuple[int, ...] = ()


async def close_dead_owners(database: Database, now: Now) -> list[Recovered]:
    """At start, and where work waits for a dead owner's scope: leave nothing of an owner that is gone; touch
    nothing of one that lives. Also deletes rows older than retention.

    A scope lease ends only with the last process of its run; until then it names what is left.

    Safe in several processes at once, and again after a crash half way: processes are ended first, rows
    closed after.

    :raises StoreError: the file cannot be read or written.
    """
    dead = [row for row in await database.read(records.running) if proven_dead(row.owner)]
    orphans = [lease for lease in await database.read(load_leases) if orphaned(lease)]
    ended: list[Survivor] = []
    left: list[Survivor] = []
    if dead or orphans:
        run_ids = {row.run_id for row in dead} | {lease.run_id for lease in orphans}
        ended, left = await anyio.to_thread.run_sync(end_survivors, run_ids)
    ids = {row.id for row in dead}

    async def close(connection: Connection) -> list[AttemptRow]:
        before = await records.retained_since(connection, now.wall)
        await records.prune(connection, before)
        await requests.prune(connection)
        await prune_plans(connection, before)
        await prune_fan_outs(connection, before)
        await close_dead(connection, now.wall)
        await prune_asks(connection, before)
        rows = [row for row in await records.by_id(connection, ids) if row.status == "running"]
        gone = await close_as_unknown(connection, rows, "its owner died", now)
        if orphans:
            await _end_leases(connection, {lease.id for lease in orphans}, left)
        return gone

    gone = await database.write(close, wait_s=5.0)
    await tell_of(database, gone)
    return [
        Recovered(
            row=row,
            ended=tuple(each.pid for each in ended if each.run_id == row.run_id),
            left=tuple(each.pid for each in left if each.run_id == row.run_id),
        )
        for row in gone
    ]


async def close_as_unknown(
    connection: Connection, rows: Collection[AttemptRow], reason: str, now: Now
) -> list[AttemptRow]:
    """Close these open rows, and free the pools that they were the probes of. What their attempts settle
    later is refused, since only the first end of a row counts."""
    gone = [closed(row, None, AttemptEnd(status="unknown"), now.wall) for row in rows]
    gone = [msgspec.structs.replace(row, reason=reason) for row in gone]
    await records.update(connection, gone)
    pools = await load_pools(connection, {row.pool for row in rows if row.pool is not None})
    await save_pools(connection, _freed(pools, rows, now))
    return gone


async def _end_leases(connection: Connection, orphans: Collection[str], left: Collection[Survivor]) -> None:
    """End each lease whose run left nothing; a place in the line, which holds nothing, in any case."""
    kept: list[ScopeLease] = []
    ended: list[str] = []
    for lease in await load_leases(connection):
        if lease.id not in orphans:
            continue
        names = tuple(str(each) for each in left if each.run_id == lease.run_id)
        if lease.held and names:
            kept.append(msgspec.structs.replace(lease, left=names))
        else:
            ended.append(lease.id)
    await delete_leases(connection, ended)
    await save_leases(connection, kept)


def _freed(pools: dict[str, Pool], rows: Collection[AttemptRow], now: Now) -> list[Pool]:
    """The pools whose probe's row is among these, without their lease."""
    freed = {}
    for row in rows:
        pool = pools.get(row.pool or "")
        if pool is None or pool.lease is None or pool.lease.id != row.id:
            continue
        ticket = Ticket(pool=pool.name, generation=pool.generation, attempt=row.id, lease_id=row.id)
        freed[pool.name], _ = decide(pool, Settled(ticket=ticket, cancelled=True), now)
    return list(freed.values())


def survivors(run_ids: Collection[str]) -> Iterator[Survivor]:
    """The processes that carry one of these run ids. What may not be read belongs to another user, and so
    was not started by us."""
    for process in psutil.process_iter():
        started = start_of(process.pid)
        try:
            run_id = process.environ().get(RUN_VARIABLE)
        except (psutil.Error, OSError):
            continue
        if started is not None and run_id is not None and run_id in run_ids:
            yield Survivor(process.pid, started, run_id)


def end_survivors(run_ids: Collection[str]) -> tuple[list[Survivor], list[Survivor]]:
    """Ask every survivor to end, wait, kill the rest; until none is left or none can be ended. Blocks for
    some seconds at most.

    Neither this process nor an ancestor of it is ever signalled: they are among those left.

    :returns: those that are gone, and those that are left.
    """
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found: dict[int, Survivor] = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        again = {each.pid: each for each in survivors(run_ids)}  # one that was forked meanwhile, too
        found |= again
        for survivor in again.values():
            if survivor.pid not in spared:
                _signal(survivor, number)
        _wait_gone([each for each in again.values() if each.pid not in spared])
    # Looked for once more, for what was forked after the last look: the proof is that none is found.
    left = [*survivors(run_ids)]
    return [each for each in found.values() if each not in left], left


def _signal(survivor: Survivor, number: signal.Signals) -> None:
    """To that very process, or to nobody."""
    try:
        if not hasattr(os, "pidfd_open"):
            if start_of(survivor.pid) == survivor.started:
                os.kill(survivor.pid, number)
            return
        descriptor = os.pidfd_open(survivor.pid)
        try:
            # The descriptor holds on to one process; if it is the one that was found, it stays that one.
            if start_of(survivor.pid) == survivor.started:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    except (ProcessLookupError, PermissionError):
        return  # gone; or not ours to signal, and then it is seen among those left


def _wait_gone(processes: list[Survivor]) -> None:
    waited = []
    for each in processes:
        try:
            waited.append(psutil.Process(each.pid))
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(waited, timeout=GRACE_S)
