"""The health of a project's pools straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from pathlib import Path

from custodes.store import Connection
from custodes.supervision.audit import clear_health
from custodes.supervision.clock import now
from custodes.supervision.health_view import HealthView
from custodes.supervision.pool_table import read_health
from custodes.supervision.project_file import ProjectFile, overriding


class HealthFile(ProjectFile):
    """A look at how the pools stand; empty where the project has no database yet."""

    async def read(self) -> HealthView:
        """:raises StoreError: the file cannot be read."""

        async def health(connection: Connection) -> HealthView:
            return await read_health(connection, now())

        return await self.look(health, HealthView())


async def clear_in_file(project: Path, target: str, by: str) -> tuple[str, ...]:
    """Clear a pool, or all of an adapter, audited; what was cleared. A running host sees it at its next ask.

    :raises StoreError: the file cannot be written; nothing was cleared.
    """
    async with overriding(project) as database:
        return () if database is None else await clear_health(project, database, target, by)
