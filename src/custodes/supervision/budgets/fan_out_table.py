"""The rows of fan-outs under a budget: each one's ledger, as it was last written."""

from __future__ import annotations

import msgspec

from custodes.store import Connection, Table
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.record.owner_identity import Owner, this_process


class FanOutRow(msgspec.Struct, frozen=True, kw_only=True):
    """``id`` is that of the group that its attempts' rows name. Times are wall seconds since the epoch; those
    of its ledger are the owner's loop's. ``changed`` is when it was last written, and ``ended`` None while
    the fan-out is open."""

    id: str
    conversation: str
    name: str
    ledger: Ledger
    owner: Owner = msgspec.field(default_factory=this_process)
    started: float
    changed: float
    ended: float | None = None


FAN_OUTS = Table("fan_outs", FanOutRow)


async def save_fan_out(connection: Connection, row: FanOutRow) -> None:
    await FAN_OUTS.replace(connection, [row])


async def fan_outs_of(connection: Connection, conversation: str) -> list[FanOutRow]:
    """Those of one conversation, the oldest first."""
    return await FAN_OUTS.select(connection, "WHERE conversation = ? ORDER BY started, id", conversation)


async def prune_fan_outs(connection: Connection, before: float) -> None:
    """Delete those of which nothing was written since this wall time."""
    await connection.execute_fetchall("DELETE FROM fan_outs WHERE changed < ?", (before,))
