"""The rows of the scope leases, and the count that their numbers come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from custodes.store import Connection, Table, json_text
from custodes.supervision.writers.lease import ScopeLease

LEASES = Table("scope_leases", ScopeLease)


async def load_leases(connection: Connection) -> list[ScopeLease]:
    """The whole line, in order."""
    return await LEASES.select(connection, "ORDER BY number")


async def save_leases(connection: Connection, leases: Iterable[ScopeLease]) -> None:
    await LEASES.replace(connection, leases)


async def delete_leases(connection: Connection, ids: Iterable[str]) -> None:
    await LEASES.delete(connection, "id", ids)


async def held_among(connection: Connection, ids: Collection[str]) -> frozenset[str]:
    """Those of these leases that are still held."""
    rows = await connection.execute_fetchall(
        "SELECT id FROM scope_leases WHERE held AND id IN (SELECT value FROM json_each(?))",
        (json_text(sorted(ids)),),
    )
    return frozenset(lease_id for (lease_id,) in rows)


async def last_number(connection: Connection) -> int:
    ((last,),) = await connection.execute_fetchall("SELECT last FROM fencing")
    return int(last)


async def save_last_number(connection: Connection, last: int) -> None:
    await connection.execute_fetchall("UPDATE fencing SET last = ?", (last,))
