"""The rows of the scope leases, and the count that their numbers come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from custodes.store import Connection
from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.writers.lease import ScopeLease
from custodes.supervision.writers.scopes import Scope

_JSON = {"scope": Scope, "owner": Owner, "beat": Now, "left": tuple[str, ...]}
_COLUMNS = ScopeLease.__struct_fields__
_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_SELECT = f"SELECT {_NAMES} FROM scope_leases"  # noqa: S608 - the names of our own fields
_SAVE = f"INSERT OR REPLACE INTO scope_leases ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - as above


async def load_leases(connection: Connection) -> list[ScopeLease]:
    """The whole line, in order."""
    return [_decoded(row) for row in await connection.execute_fetchall(f"{_SELECT} ORDER BY number")]


async def save_leases(connection: Connection, leases: Iterable[ScopeLease]) -> None:
    if values := [_encoded(lease) for lease in leases]:
        await connection.executemany(_SAVE, values)


async def delete_leases(connection: Connection, ids: Iterable[str]) -> None:
    if values := [(lease_id,) for lease_id in ids]:
        await connection.executemany("DELETE FROM scope_leases WHERE id = ?", values)


async def held_among(connection: Connection, ids: Collection[str]) -> frozenset[str]:
    """Those of these leases that are still held."""
    rows = await connection.execute_fetchall(
        "SELECT id FROM scope_leases WHERE held AND id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(sorted(ids)).decode(),),
    )
    return frozenset(lease_id for (lease_id,) in rows)


async def last_number(connection: Connection) -> int:
    ((last,),) = await connection.execute_fetchall("SELECT last FROM fencing")
    return int(last)


async def save_last_number(connection: Connection, last: int) -> None:
    await connection.execute_fetchall("UPDATE fencing SET last = ?", (last,))


def _encoded(lease: ScopeLease) -> tuple[Any, ...]:
    return tuple(
        msgspec.json.encode(value).decode() if name in _JSON else value
        for name, value in msgspec.structs.asdict(lease).items()
    )


def _decoded(row: Collection[Any]) -> ScopeLease:
    fields = dict(zip(_COLUMNS, row, strict=True))
    for name, kind in _JSON.items():
        fields[name] = msgspec.json.decode(fields[name], type=kind)
    return ScopeLease(**fields | {"held": bool(fields["held"])})
