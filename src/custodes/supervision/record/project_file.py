"""The project's database for surfaces that start no tree: looked at, or overridden by an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import anyio
import anyio.lowlevel

from custodes.paths import absent
from custodes.store import Connection, Database, StoreClosed, StoreReplaced
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

T = TypeVar("T")


class ProjectFile:
    """Looks as often as one likes; makes, migrates and changes nothing. Opened at the first look, and anew
    where another file stands there by then."""

    def __init__(self, project: Path) -> None:
        self._path = project / DATABASE
        self._database: Database | None = None
        self.opened: int = 0
        """How many files it has looked at so far, one after another."""
        self._turn = anyio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            await self._database.aclose()

    async def _current(self, gone: Database | None = None) -> Database | None:
        """The open file; None where there is none yet. ``gone`` is one that is there no more."""
        async with self._turn:
            if self._database is not None and self._database is gone:
                self._database = None
                await gone.aclose()
            if self._database is None:
                self._database = await Database.open_read_only(self._path, MIGRATIONS)
                self.opened += self._database is not None
            return self._database

    async def look(self, query: Callable[[Connection], Awaitable[T]], empty: T) -> T:
        """What the query finds; ``empty`` where the project has no database yet.

        :raises StoreError: the file cannot be read.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()  # the store's own wait is shielded
        database = self._database or await self._current()
        while database is not None:
            try:
                return await database.read(query)
            except StoreReplaced:
                database = await self._current(database)
            except StoreClosed:
                if database is self._database:
                    raise
                database = await self._current()  # another look has found that it is there no more
        return empty


@asynccontextmanager
async def overriding(project: Path) -> AsyncIterator[Database | None]:
    """The file to write an operator's override to; None where there is none yet, and none is made.

    :raises StoreError: the file cannot be opened.
    """
    path = project / DATABASE
    if absent(path):
        yield None
        return
    database = await Database.open(path, MIGRATIONS)
    try:
        yield database
    finally:
        await database.aclose()
