"""The pools' and the unavailable adapters' rows: read, and written as it was decided. No rule stands here."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from custodes.store import Connection
from custodes.supervision.pools.breaker import Lease, Pool
from custodes.supervision.pools.health_view import HealthView, Unavailability, view
from custodes.supervision.record.clock import Deadline, Now

_deadline = msgspec.json.Decoder(Deadline)
_lease = msgspec.json.Decoder(Lease)
_encode = msgspec.json.Encoder().encode


async def load_pools(connection: Connection, names: Collection[str] | None = None) -> dict[str, Pool]:
    """Those of these names that have a row; every one where None."""
    rows = await connection.execute_fetchall(
        "SELECT name, generation, failure_count, deadline, lease, mark, reason FROM pools "
        "WHERE ? IS NULL OR name IN (SELECT value FROM json_each(?))",
        (_names(names),) * 2,
    )
    return {
        name: Pool(
            name=name,
            generation=generation,
            failure_count=failure_count,
            deadline=deadline and _deadline.decode(deadline),
            lease=lease and _lease.decode(lease),
            mark=mark and _deadline.decode(mark),
            reason=reason,
        )
        for name, generation, failure_count, deadline, lease, mark, reason in rows
    }


async def save_pools(connection: Connection, pools: Iterable[Pool]) -> None:
    if rows := [
        (
            pool.name,
            pool.generation,
            pool.failure_count,
            _text(pool.deadline),
            _text(pool.lease),
            _text(pool.mark),
            pool.reason,
        )
        for pool in pools
    ]:
        await connection.executemany("INSERT OR REPLACE INTO pools VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


async def load_unavailable(
    connection: Connection, adapters: Collection[str] | None = None
) -> dict[str, Unavailability]:
    """By adapter; every one where None."""
    rows = await connection.execute_fetchall(
        "SELECT adapter, fingerprint, category, reason, since FROM unavailable "
        "WHERE ? IS NULL OR adapter IN (SELECT value FROM json_each(?))",
        (_names(adapters),) * 2,
    )
    return {
        adapter: Unavailability(
            adapter=adapter, fingerprint=fingerprint, category=category, reason=reason, since=since
        )
        for adapter, fingerprint, category, reason, since in rows
    }


async def save_unavailable(
    connection: Connection, marks: Iterable[tuple[str, Unavailability | None]]
) -> None:
    """Set, or with None delete, what stands of these adapters."""
    for adapter, mark in marks:
        if mark is None:
            await connection.execute_fetchall("DELETE FROM unavailable WHERE adapter = ?", (adapter,))
        else:
            await connection.execute_fetchall(
                "INSERT OR REPLACE INTO unavailable VALUES (?, ?, ?, ?, ?)", msgspec.structs.astuple(mark)
            )


async def read_health(connection: Connection, now: Now) -> HealthView:
    """How everything stands, for a surface that looks at the file without a running tree."""
    pools = await load_pools(connection)
    unavailable = await load_unavailable(connection)
    return view(pools.values(), unavailable.values(), now)


def _text(value: Deadline | Lease | None) -> str | None:
    return None if value is None else _encode(value).decode()


def _names(names: Collection[str] | None) -> str | None:
    return None if names is None else _encode(sorted(names)).decode()
