"""The project's database for surfaces that start no tree: looked at, or overridden by an operator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from custodes.store import Connection, Database
from custodes.supervision.schema import DATABASE, MIGRATIONS

T = TypeVar("T")


class ProjectFile:
    """Looks as often as one likes; makes, migrates and changes nothing. Opened at the first look."""

    def __init__(self, project: Path) -> None:
        self._path = project / DATABASE
        self._database: Database | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            await self._database.aclose()

    async def look(self, query: Callable[[Connection], Awaitable[T]], empty: T) -> T:
        """What the query finds; ``empty`` where the project has no database yet.

        :raises StoreError: the file cannot be read.
        """
        if self._database is None:
            self._database = await Database.open_read_only(self._path, MIGRATIONS)
        return empty if self._database is None else await self._database.read(query)


@asynccontextmanager
async def overriding(project: Path) -> AsyncIterator[Database | None]:
    """The file to write an operator's override to; None where there is none yet, and none is made.

    :raises StoreError: the file cannot be opened.
    """
    path = project / DATABASE
    if not path.exists():
        yield None
        return
    database = await Database.open(path, MIGRATIONS)
    try:
        yield database
    finally:
        await database.aclose()
