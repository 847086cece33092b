"""The health of a project's pools straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from custodes.store import Database
from custodes.supervision.audit import clear_health
from custodes.supervision.clock import now
from custodes.supervision.health_view import HealthView
from custodes.supervision.pool_table import read_health
from custodes.supervision.schema import MIGRATIONS
from custodes.supervision.tree import DATABASE


class HealthFile:
    """Reads as often as one likes; makes, migrates and changes nothing."""

    def __init__(self, project: Path) -> None:
        self._path = project / DATABASE
        self._database: Database | None = None

    async def read(self) -> HealthView:
        """How the pools stand now; empty where the project has no database yet.

        :raises StoreError: the file cannot be read.
        """
        if self._database is None:
            self._database = await Database.open_read_only(self._path, MIGRATIONS)
        if self._database is None:
            return HealthView()
        return await self._database.read(lambda connection: read_health(connection, now()))

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.aclose()


@asynccontextmanager
async def health_file(project: Path) -> AsyncIterator[HealthFile]:
    file = HealthFile(project)
    try:
        yield file
    finally:
        await file.aclose()


async def clear_in_file(project: Path, target: str, by: str) -> tuple[str, ...]:
    """Clear a pool, or all of an adapter, audited; what was cleared. A running host sees it at its next ask.

    :raises StoreError: the file cannot be written; nothing was cleared.
    """
    path = project / DATABASE
    if not path.exists():
        return ()
    database = await Database.open(path, MIGRATIONS)
    try:
        return await clear_health(project, database, target, by)
    finally:
        await database.aclose()
