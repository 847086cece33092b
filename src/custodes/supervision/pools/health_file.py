"""The health of a project's pools straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from pathlib import Path

from custodes.store import Connection
from custodes.supervision.pools.admission import Clear
from custodes.supervision.pools.health import fold_and_commit
from custodes.supervision.pools.health_view import HealthView
from custodes.supervision.pools.pool_table import read_health
from custodes.supervision.record.audit import write_down
from custodes.supervision.record.clock import now
from custodes.supervision.record.project_file import ProjectFile, overriding


class HealthFile(ProjectFile):
    """A look at how the pools stand; empty where the project has no database yet."""

    async def read(self) -> HealthView:
        """:raises StoreError: the file cannot be read."""

        async def health(connection: Connection) -> HealthView:
            return await read_health(connection, now())

        return await self.look(health, HealthView())


async def clear_in_file(project: Path, target: str, by: str) -> tuple[str, ...]:
    """Clear a pool (``adapter:bucket``) or all of an adapter, and write it down. The surfaces' one way.

    A running host sees it at its next ask.

    :returns: what was cleared; empty where there was nothing of that name.
    :raises StoreError: the file cannot be written; nothing was cleared.
    :raises AuditError: it was done, and could not be written down.
    """
    async with overriding(project) as database:
        if database is None:
            return ()
        (cleared,), _ = await fold_and_commit(database, [Clear(target)], now)
    await write_down(project, "health.clear", target, by, now(), cleared)
    return tuple(cleared)
