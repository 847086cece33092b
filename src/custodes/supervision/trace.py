"""What a conversation came to, from its rows: for surfaces that start no tree."""

from __future__ import annotations

from pathlib import Path

from custodes.store import Database
from custodes.supervision import records
from custodes.supervision.records import AttemptRow
from custodes.supervision.schema import MIGRATIONS
from custodes.supervision.tree import DATABASE


async def trace(project: Path, conversation: str) -> tuple[AttemptRow, ...]:
    """Every attempt, refusal and dry run of a conversation, oldest first; none where nothing is on record.

    :raises StoreError: the database cannot be read.
    """
    database = await Database.open_read_only(project / DATABASE, MIGRATIONS)
    if database is None:
        return ()
    try:
        return tuple(
            await database.read(lambda connection: records.of_conversation(connection, conversation))
        )
    finally:
        await database.aclose()
