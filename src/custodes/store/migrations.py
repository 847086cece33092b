"""The file's schema, step by step, counted by ``PRAGMA user_version``. Only ever upward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import StoreTooNew

if TYPE_CHECKING:  # annotations only
    from .connection import Connection

Migration = tuple[str, ...]
"""The statements of one step. A step that was released is never edited: add another."""


async def version(connection: Connection) -> int:
    """The steps that the file has behind it."""
    ((found,),) = await connection.execute_fetchall("PRAGMA user_version")
    return int(found)


def refuse_newer(path: Path, found: int, migrations: Sequence[Migration]) -> None:
    """:raises StoreTooNew: the file has more steps behind it than there are."""
    if found > len(migrations):
        raise StoreTooNew(path, found, len(migrations))


async def migrate(path: Path, connection: Connection, migrations: Sequence[Migration]) -> None:
    """Take the steps that are missing, inside the caller's transaction: all of them, or none.

    :raises StoreTooNew: see :func:`refuse_newer`.
    """
    found = await version(connection)
    refuse_newer(path, found, migrations)
    for statements in migrations[found:]:
        for statement in statements:
            await connection.execute_fetchall(statement)
    if found < len(migrations):
        await connection.execute_fetchall(f"PRAGMA user_version = {len(migrations)}")
