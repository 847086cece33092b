"""The rows of a project's file that stop whoever asks for them, for a person who wants to know before."""

from __future__ import annotations

from pathlib import Path

from custodes.store import Connection
from custodes.supervision.asks.permission_table import ASKS
from custodes.supervision.asks.requests import REQUESTS
from custodes.supervision.budgets.fan_out_table import FAN_OUTS
from custodes.supervision.plans.checkpoints import PLANS, STEPS
from custodes.supervision.pools.pool_table import POOLS, UNAVAILABLE
from custodes.supervision.record.project_file import ProjectFile
from custodes.supervision.record.records import ATTEMPTS
from custodes.supervision.writers.lease_table import LEASES

TABLES = (ATTEMPTS, FAN_OUTS, PLANS, STEPS, POOLS, UNAVAILABLE, LEASES, REQUESTS, ASKS)


async def unreadable(project: Path) -> tuple[str, ...]:
    """A sentence for each of them; empty where the project has no database yet.

    :raises StoreError: the file itself cannot be read.
    """

    async def look(connection: Connection) -> tuple[str, ...]:
        return tuple([told for table in TABLES for told in await table.unreadable(connection)])

    async with ProjectFile(project) as file:
        return await file.look(look, ())
