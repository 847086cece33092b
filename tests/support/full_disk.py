"""A database whose disk is full for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from custodes.store import Connection, Database, StoreFull


class FullDisk:
    """Writes fail while ``full``."""

    def __init__(self, database: Database) -> None:
        self.full = True
        self._database = database

    async def write(self, fold: Callable[[Connection], Awaitable[Any]], wait_s: float = 1.0) -> Any:
        if self.full:
            raise StoreFull(self._database.path)
        return await self._database.write(fold, wait_s)
