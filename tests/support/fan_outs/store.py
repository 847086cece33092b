"""The store without its thread: the same folds over the same SQL, in the loop of the simulation.

A thread takes real time, which no mock clock knows of. So the file is SQLite in memory, asked from the host's
own loop; what callers see is kept: one writer at a time, no cancel cuts a transaction, the rollback of one
that fails, and another process that holds the file for some time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio

from custodes.store import Connection, Migration, StoreLocked
from support.fan_outs.life import Life

T = TypeVar("T")


class InlineConnection:
    """What a fold uses of a connection."""

    def __init__(self) -> None:
        self.sqlite = sqlite3.connect(":memory:", isolation_level=None)
        self.sqlite.row_factory = sqlite3.Row

    async def execute_fetchall(self, sql: str, parameters: Any = ()) -> list[Any]:
        return self.sqlite.execute(sql, parameters).fetchall()

    async def executemany(self, sql: str, values: Iterable[Any]) -> None:
        self.sqlite.executemany(sql, values)


class InlineStore:
    """As :class:`custodes.store.Database`, for one life."""

    def __init__(self, life: Life) -> None:
        self.path = Path("simulated.db")
        self._life = life
        self._inline = InlineConnection()
        self._connection = cast("Connection", self._inline)
        self._turn = anyio.Lock()
        self.made = False

    async def open(self, path: Path, migrations: Sequence[Migration]) -> InlineStore:
        """The first time, the tables are made. A host may open it again: its first start was cancelled."""
        for statements in () if self.made else migrations:
            for statement in statements:
                await self._inline.execute_fetchall(statement)
        self.made = True
        return self

    async def write(self, fold: Callable[[Connection], Awaitable[T]], wait_s: float = 1.0) -> T:
        return await self._shielded(self._write, fold, wait_s)

    async def read(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._shielded(query, self._connection)

    async def _shielded(self, step: Callable[..., Awaitable[T]], *given: object) -> T:
        outcome: list[T] = []
        with anyio.CancelScope(shield=True):
            await anyio.sleep(self._life.random.uniform(0, self._life.temper.statement_s))
            outcome.append(await step(*given))
        return outcome[0]

    async def _write(self, fold: Callable[[Connection], Awaitable[T]], wait_s: float) -> T:
        until = anyio.current_time() + wait_s
        with anyio.move_on_after(wait_s) as turn:
            await self._turn.acquire()
        if turn.cancelled_caught:
            raise StoreLocked(self.path, wait_s)
        try:
            while anyio.current_time() < self._life.busy_until:
                if anyio.current_time() >= until:
                    raise StoreLocked(self.path, wait_s)
                await anyio.sleep(0.01)
            self._inline.sqlite.execute("BEGIN IMMEDIATE")
            try:
                answer = await fold(self._connection)
            except BaseException:
                self._inline.sqlite.execute("ROLLBACK")
                raise
            self._inline.sqlite.execute("COMMIT")
            return answer
        finally:
            self._turn.release()

    async def aclose(self) -> None:
        """The file outlives whoever closes it, as a file does: its life reads it afterwards."""

    def close(self) -> None:
        """Its life is over, and has been read."""
        self._inline.sqlite.close()
