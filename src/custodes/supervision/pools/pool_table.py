"""The pools' and the unavailable adapters' rows: read, and written as it was decided. No rule stands here."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from custodes.store import Connection, Table
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.health_view import HealthView, Unavailability, view
from custodes.supervision.record.clock import Now

POOLS = Table("pools", Pool)
UNAVAILABLE = Table("unavailable", Unavailability)


async def load_pools(connection: Connection, names: Collection[str] | None = None) -> dict[str, Pool]:
    """Those of these names that have a row; every one where None."""
    found = POOLS.select(connection) if names is None else POOLS.among(connection, "name", names)
    return {pool.name: pool for pool in await found}


async def save_pools(connection: Connection, pools: Iterable[Pool]) -> None:
    await POOLS.replace(connection, pools)


async def load_unavailable(
    connection: Connection, adapters: Collection[str] | None = None
) -> dict[str, Unavailability]:
    """By adapter; every one where None."""
    marks = UNAVAILABLE
    found = marks.select(connection) if adapters is None else marks.among(connection, "adapter", adapters)
    return {mark.adapter: mark for mark in await found}


async def save_unavailable(
    connection: Connection, marks: Iterable[tuple[str, Unavailability | None]]
) -> None:
    """Set, or with None delete, what stands of these adapters."""
    for adapter, mark in marks:
        if mark is None:
            await UNAVAILABLE.delete(connection, "adapter", [adapter])
        else:
            await UNAVAILABLE.replace(connection, [mark])


async def read_health(connection: Connection, now: Now) -> HealthView:
    """How everything stands, for a surface that looks at the file without a running tree."""
    pools = await load_pools(connection)
    unavailable = await load_unavailable(connection)
    return view(pools.values(), unavailable.values(), now)
