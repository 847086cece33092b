"""What ran in a project, straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from custodes.store import Connection, Database
from custodes.supervision import records
from custodes.supervision.owner_identity import proven_dead
from custodes.supervision.records import AttemptRow
from custodes.supervision.run_view import AttemptView, attempts_seen
from custodes.supervision.schema import MIGRATIONS
from custodes.supervision.tree import DATABASE


class RecordFile:
    """Reads as often as one likes; makes, migrates and changes nothing. All of it is empty where the project
    has no database yet.

    Every method raises :exc:`~custodes.store.StoreError` where the file cannot be read.
    """

    def __init__(self, project: Path) -> None:
        self._path = project / DATABASE
        self._database: Database | None = None

    async def conversation(self, conversation: str) -> tuple[AttemptView, ...]:
        """Every attempt, refusal and dry run of a conversation, oldest first."""
        return await self._read(partial(records.of_conversation, conversation=conversation))

    async def run(self, run_id: str) -> tuple[AttemptView, ...]:
        return await self._read(partial(records.of_run, run_id=run_id))

    async def latest(self, runs: int) -> tuple[AttemptView, ...]:
        """Every row of the newest runs, oldest first."""
        return await self._read(partial(records.latest_runs, limit=runs))

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.aclose()

    async def _read(
        self, query: Callable[[Connection], Awaitable[list[AttemptRow]]]
    ) -> tuple[AttemptView, ...]:
        if self._database is None:
            self._database = await Database.open_read_only(self._path, MIGRATIONS)
        if self._database is None:
            return ()
        return attempts_seen(await self._database.read(query), proven_dead)


@asynccontextmanager
async def record_file(project: Path) -> AsyncIterator[RecordFile]:
    file = RecordFile(project)
    try:
        yield file
    finally:
        await file.aclose()
