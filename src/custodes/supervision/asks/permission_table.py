"""The rows of the asks for permission: what was asked, who answered what, and when.

``detail`` is there while an ask is open, for whoever decides, and deleted once it closes: it may hold a
secret.
"""

from __future__ import annotations

import msgspec

from custodes.adapters.port import PermissionAnswer
from custodes.store import Connection, Table
from custodes.supervision.record.owner_identity import Owner, proven_dead


class AskRow(msgspec.Struct, frozen=True, kw_only=True):
    """``depth`` is the level of the child that asks: 1 is a conversation's own. Times are wall seconds since
    the epoch; ``deadline`` is when it is denied. ``answer`` is None while it is open, ``by`` who gave it."""

    id: str
    run_id: str
    conversation: str
    role: str
    name: str
    depth: int
    tool: str
    detail: str
    asked: float
    deadline: float
    owner: Owner
    answer: PermissionAnswer | None = None
    by: str = ""
    answered: float | None = None


ASKS = Table("asks", AskRow)


async def open_ask(connection: Connection, row: AskRow) -> None:
    await ASKS.insert(connection, [row])


async def close_ask(
    connection: Connection, ask_id: str, answer: PermissionAnswer, by: str, at: float
) -> None:
    """Only the first answer counts."""
    await connection.execute_fetchall(
        "UPDATE asks SET answer = ?, \"by\" = ?, answered = ?, detail = '' WHERE id = ? AND answer IS NULL",
        (answer, by, at, ask_id),
    )


async def find_ask(connection: Connection, ask_id: str) -> AskRow | None:
    return next(iter(await ASKS.select(connection, "WHERE id = ?", ask_id)), None)


async def open_asks(connection: Connection) -> list[AskRow]:
    """Those that nobody has answered yet, the oldest first."""
    return await ASKS.select(connection, "WHERE answer IS NULL ORDER BY asked, id")


async def close_dead(connection: Connection, at: float) -> None:
    """Deny what a dead owner left open: what asked is gone, too."""
    for row in await open_asks(connection):
        if proven_dead(row.owner):
            await close_ask(connection, row.id, "deny", "its owner died", at)


async def prune_asks(connection: Connection, before: float) -> None:
    """Delete what was answered before this wall time."""
    await connection.execute_fetchall("DELETE FROM asks WHERE answered < ?", (before,))
