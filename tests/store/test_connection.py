"""A fold runs in its connection's thread, from its first statement to its last."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import aiosqlite
import pytest

from custodes.store import Connection
from custodes.store.connection import asked, folded, transacted


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_work_runs_in_the_thread_of_the_connection_by_one_switch(tmp_path: Path) -> None:
    """aiosqlite has no public name for it: this is what we count on."""

    def where(connection: sqlite3.Connection) -> tuple[threading.Thread, bool]:
        return threading.current_thread(), isinstance(connection, sqlite3.Connection)

    async with aiosqlite.connect(tmp_path / "a.db") as connection:
        first = await asyncio.wrap_future(asked(connection, where))
        assert await asyncio.wrap_future(asked(connection, where)) == first == (connection._thread, True)
        with pytest.raises(ZeroDivisionError):
            await asyncio.wrap_future(asked(connection, lambda _: 1 // 0))


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_has_not_begun_can_be_withdrawn_and_is_never_done(tmp_path: Path) -> None:
    done: list[str] = []
    go_on = threading.Event()
    async with aiosqlite.connect(tmp_path / "a.db") as connection:
        slow = asked(connection, lambda _: go_on.wait(20))
        withdrawn = asked(connection, lambda _: done.append("withdrawn"))
        assert withdrawn.cancel()
        go_on.set()
        await asyncio.wrap_future(asked(connection, lambda _: done.append("last")))
        assert slow.result()
    assert done == ["last"]


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE notes (text TEXT)")
    return connection


async def note(connection: Connection) -> int:
    await connection.executemany("INSERT INTO notes VALUES (?)", [("one",), ("two",)])
    return len(await connection.execute_fetchall("SELECT * FROM notes"))


async def note_and_wait(connection: Connection) -> None:
    await note(connection)
    await asyncio.sleep(0)


def test_a_fold_is_run_to_its_end(connection: sqlite3.Connection) -> None:
    with closing(connection):
        assert folded(connection, note) == 2
        assert transacted(connection, note) == 4
        assert not connection.in_transaction


def test_a_fold_that_waits_for_something_else_is_rolled_back(
    connection: sqlite3.Connection,
) -> None:
    with closing(connection):
        with pytest.raises(RuntimeError, match="waits for its connection alone"):
            transacted(connection, note_and_wait)
        assert not connection.in_transaction
        assert connection.execute("SELECT * FROM notes").fetchall() == []
