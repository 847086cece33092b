"""The project's file as it stands at one moment, read as any foreign program reads it."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
QUERIES = {
    "attempts": "SELECT * FROM attempts",
    "pools": "SELECT * FROM pools",
    "requests": "SELECT id, kind, run_id, owner, client, status, asked FROM requests",
    "leases": 'SELECT id, run_id, number, held, owner, since, "left" FROM scope_leases',
    "asks": "SELECT id, run_id, owner, asked, deadline, answer FROM asks",
    "plans": "SELECT id, name, status, owner, ledger FROM plans",
    "steps": "SELECT plan, step, run_id, mutable, status, outcome, resolved FROM plan_steps",
    "fencing": "SELECT last FROM fencing",
    "incidents": "SELECT cause, status FROM overseer_incidents",
}
JSON = {
    "attempts": ("owner",),
    "pools": ("lease",),
    "requests": ("owner", "client"),
    "leases": ("owner", "left"),
    "asks": ("owner",),
    "plans": ("owner", "ledger"),
    "steps": ("outcome",),
}


class Record(NamedTuple):
    """All tables in one read transaction. ``at`` is wall time."""

    at: float
    tables: dict[str, list[Row]]

    def of(self, table: str) -> list[Row]:
        return self.tables[table]


def look(database: Path) -> Record | None:
    """None while there is no file yet. :raises sqlite3.Error: it cannot be read."""
    if not database.exists():
        return None
    with closing(_opened(database)) as connection:
        connection.execute("BEGIN")
        at = time.time()
        return Record(
            at, {name: _rows(connection, query, JSON.get(name, ())) for name, query in QUERIES.items()}
        )


def integrity(database: Path) -> list[str]:
    """What SQLite itself finds wrong in the file; empty where nothing is."""
    with closing(_opened(database)) as connection:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
    return [] if found == ["ok"] else found


def plan_runs(database: Path, fault: Callable[[str], None]) -> list[str]:
    """The newest plan runs that are not done."""
    if not database.exists():
        return []
    query = "SELECT id FROM plans WHERE status <> 'done' ORDER BY started DESC LIMIT 6"
    try:
        with closing(_opened(database)) as connection:
            return [str(row[0]) for row in connection.execute(query)]
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):  # the file is being made
            fault(f"the record cannot be read: {error}")
        return []


def _opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


def _rows(connection: sqlite3.Connection, query: str, documents: tuple[str, ...]) -> list[Row]:
    return [
        {
            name: json.loads(value) if name in documents and value is not None else value
            for name, value in dict(row).items()
        }
        for row in connection.execute(query)
    ]
