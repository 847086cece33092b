"""A Struct's fields as a table's columns: what is written is what is read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, Literal

import msgspec
import pytest

from custodes.store import Connection, Table
from custodes.store.connection import folded


class Part(msgspec.Struct, frozen=True):
    text: str


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    left: int | None = None  # a word of SQL's
    share: float = 0.0
    done: bool = False
    state: Literal["new", "old"] | str = "new"
    part: Part | None = None
    parts: tuple[Part, ...] = ()


THINGS = Table("things", Thing, changing=("done", "part"))
CREATE = """
CREATE TABLE things (id TEXT PRIMARY KEY, "left" INTEGER, share REAL NOT NULL, done INTEGER NOT NULL,
    state TEXT NOT NULL, part TEXT, parts TEXT NOT NULL) STRICT
"""
FULL = Thing(id="a", left=3, share=0.5, done=True, state="odd", part=Part('"é'), parts=(Part("x"), Part("y")))
BARE = Thing(id="b")


def _told(*steps: Any) -> Any:
    """What the last of these folds returns."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(CREATE)
        return [folded(connection, step) for step in steps][-1]


async def _written(connection: Connection) -> None:
    await THINGS.insert(connection, [FULL, BARE])


def test_what_was_written_is_read() -> None:
    async def read(connection: Connection) -> Any:
        return await THINGS.select(connection, "WHERE id <> ? ORDER BY id DESC", "z")

    assert _told(_written, read) == [BARE, FULL]


def test_a_flag_is_a_number_a_struct_is_json_and_none_is_null() -> None:
    async def read(connection: Connection) -> Any:
        return [tuple(row) for row in await THINGS.rows(connection, "ORDER BY id")]

    assert _told(_written, read) == [
        ("a", 3, 0.5, 1, "odd", '{"text":"\\"é"}', '[{"text":"x"},{"text":"y"}]'),
        ("b", None, 0.0, 0, "new", None, "[]"),
    ]


def test_an_update_writes_what_may_change_and_nothing_else() -> None:
    changed = msgspec.structs.replace(FULL, done=False, part=None, share=0.9)

    async def update(connection: Connection) -> Any:
        await THINGS.update(connection, [changed])
        return await THINGS.among(connection, "id", ["a", "gone"])

    assert _told(_written, update) == [msgspec.structs.replace(FULL, done=False, part=None)]


def test_one_with_the_same_key_is_replaced_and_a_deleted_one_is_gone() -> None:
    other = Thing(id="a", left=9)

    async def change(connection: Connection) -> Any:
        await THINGS.replace(connection, [other])
        await THINGS.delete(connection, "id", ["b"])
        return await THINGS.select(connection)

    assert _told(_written, change) == [other]


def test_nothing_to_write_writes_nothing() -> None:
    async def change(connection: Connection) -> Any:
        await THINGS.insert(connection, [])
        await THINGS.delete(connection, "id", [])
        return await THINGS.select(connection)

    assert _told(change) == []


def test_one_row_that_cannot_be_read_is_an_error_and_the_others_can_be_read() -> None:
    async def tear(connection: Connection) -> Any:
        await connection.execute_fetchall("UPDATE things SET part = '{\"text\":' WHERE id = 'a'")
        with pytest.raises(msgspec.DecodeError):
            await THINGS.select(connection)
        torn, whole = await THINGS.rows(connection, "ORDER BY id")
        with pytest.raises(msgspec.DecodeError):
            THINGS.read(torn)
        assert [told.partition(" (")[0] for told in await THINGS.unreadable(connection)] == [
            "row 'a' of things cannot be read"
        ]
        return THINGS.read(whole)

    assert _told(_written, tear) == BARE


def test_text_that_is_no_utf8_hides_no_other_row_and_is_seen_as_what_it_is() -> None:
    async def tear(connection: Connection) -> Any:
        await connection.execute_fetchall("UPDATE things SET state = CAST(x'6EFF' AS TEXT) WHERE id = 'a'")
        torn = await THINGS.select(connection, "ORDER BY id")
        with pytest.raises(msgspec.DecodeError):
            await connection.execute_fetchall("DELETE FROM things WHERE id = 'a' RETURNING state")
        return torn, await THINGS.select(connection)

    torn, whole = _told(_written, tear)
    assert torn == [msgspec.structs.replace(FULL, state="n\ufffd"), BARE]
    assert whole == [BARE]


def test_an_error_of_sqlite_itself_stays_one() -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        _told(lambda connection: connection.execute_fetchall("SELECT * FROM nowhere"))
