"""A database of each earlier version opens, keeps what is in it, and is worked with."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from custodes.store import Database, StoreTooNew, integrity
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from support.cos import Cos
from support.projects import cos, programs, project

__all__ = ["cos", "programs", "project"]

EARLIER = range(1, len(MIGRATIONS))
TAKEN = (
    "77adc928a83b",
    "66ca3340de27",
    "9466810a9029",
    "72b4978641a7",
    "c413b07eff00",
    "f363935ed01c",
    "9c1983253f6f",
    "ab4db8c5caa2",
    "3f6f980dad86",
    "1c09ce25a50a",
)
"""How the digest of each step begins that has been taken somewhere. It is never edited: add another."""
VALUES: dict[str, Any] = {"TEXT": "{}", "INTEGER": 1, "REAL": 1.5}


def make(path: Path, steps: int) -> None:
    """The file as the version with so many steps made it."""

    async def opened() -> None:
        await (await Database.open(path, MIGRATIONS[:steps])).aclose()

    path.parent.mkdir(exist_ok=True)
    anyio.run(opened)


def upgrade(path: Path) -> None:
    make(path, len(MIGRATIONS))


def tables(file: sqlite3.Connection) -> list[str]:
    return [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


def columns(file: sqlite3.Connection, table: str) -> dict[str, str]:
    return {name: kind for _, name, kind, *_ in file.execute(f"PRAGMA table_info({table})")}


def rows(file: sqlite3.Connection, table: str, names: list[str]) -> list[Any]:
    listed = ", ".join(f'"{name}"' for name in names)
    return file.execute(f"SELECT {listed} FROM {table} ORDER BY 1").fetchall()  # noqa: S608 - our own names


def insert(file: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" * len(row))
    file.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))  # noqa: S608 - as above


@pytest.mark.parametrize("steps", EARLIER)
def test_a_database_of_an_earlier_version_opens_with_every_row_that_it_had(
    steps: int, tmp_path: Path
) -> None:
    path = tmp_path / "custodes.db"
    make(path, steps)
    with closing(sqlite3.connect(path)) as file, file:
        before = {}
        for table in tables(file):
            held = columns(file, table)
            insert(file, table, {name: VALUES[kind] for name, kind in held.items()})
            before[table] = (list(held), rows(file, table, list(held)))
    assert before
    upgrade(path)
    assert integrity(path, MIGRATIONS) == ()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        for table, (names, found) in before.items():
            assert rows(file, table, names) == found, table


def shown(cos: Cos) -> list[tuple[str, str, str]]:
    """Every run on record: its id, its role, and how it ended."""
    found = cos("runs", "list", "--format", "json").document["conversations"]
    runs = [run for conversation in found for run in conversation["runs"]]
    return [(run["run_id"], run["role"], run["status"]) for run in runs]


@pytest.mark.parametrize("steps", EARLIER)
def test_what_ran_under_an_earlier_version_is_still_shown_and_gone_on_from(
    steps: int, programs: Path, cos: Cos
) -> None:
    """The rows of real work, as that version would have written them: it had fewer columns."""
    assert cos("dispatch", "--role", "analyst", "--model", "limit", "What is here?").code == 1
    (ran,) = shown(cos)
    path = programs / DATABASE
    with closing(sqlite3.connect(path)) as file:
        held = {table: list(columns(file, table)) for table in tables(file)}
        kept = {
            table: [dict(zip(names, row, strict=True)) for row in rows(file, table, names)]
            for table, names in held.items()
        }
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    make(path, steps)
    with closing(sqlite3.connect(path)) as file, file:
        for table in tables(file):
            had = columns(file, table)
            file.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            for row in kept[table]:
                insert(file, table, {name: value for name, value in row.items() if name in had})
    refused = cos("dispatch", "--role", "analyst", "--model", "limit", "What is here?", "--format", "json")
    assert refused.document["outcomes"][0]["refusal"]["category"] == "capacity"
    assert len(shown(cos)) == 2
    assert ran in shown(cos)


def test_a_step_that_was_taken_is_as_it_was() -> None:
    digests = [hashlib.sha256("\n".join(step).encode()).hexdigest() for step in MIGRATIONS]
    assert [digest[:12] for digest in digests[: len(TAKEN)]] == list(TAKEN)


def test_a_newer_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "custodes.db"
    make(path, len(MIGRATIONS))
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(StoreTooNew, match="upgrade custodes"):
        upgrade(path)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
