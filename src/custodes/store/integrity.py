"""The whole check of the file, for a person who asks: slow and thorough, and it changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from .errors import StoreTooNew, translate
from .migrations import Migration
from .place import NETWORK, file_system, irregular


def integrity(path: Path, migrations: Sequence[Migration]) -> tuple[str, ...]:
    """What is wrong with the file, a sentence each; empty where it is sound, or not there yet.

    Blocks: call it from a thread where a loop runs.
    """
    if (instead := irregular(path)) is not None:
        return (instead,)
    if not path.exists():
        return ()
    findings = []
    if (found := file_system(path.parent)).lower() in NETWORK:
        findings.append(f"it stands on a network file system ({found})")
    if (mode := path.stat().st_mode & 0o777) & 0o077:
        findings.append(f"others than its owner may use it (mode {mode:04o}; 0600 is wanted)")
    try:
        with closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)
        ) as connection:
            ((version,),) = connection.execute("PRAGMA user_version").fetchall()
            if version > len(migrations):
                findings.append(StoreTooNew(path, version, len(migrations)).detail)
            else:
                findings += _altered(connection, migrations[:version])
            checked = connection.execute("PRAGMA integrity_check(20)").fetchall()
            findings += [str(finding) for (finding,) in checked if finding != "ok"]
    except sqlite3.Error as error:
        wrong = translate(path, error, 1.0)
        findings.append(str(error) if wrong is None else wrong.detail)
    return tuple(findings)


def _altered(connection: sqlite3.Connection, taken: Sequence[Migration]) -> list[str]:
    """What is missing of the schema that these steps make, or differs from it."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in (each for step in taken for each in step):
            fresh.execute(statement)
        expected, found = _schema(fresh), _schema(connection)
    return [
        f"the {kind} '{name}' is {'not as it was made' if (kind, name) in found else 'missing'}"
        for (kind, name), sql in expected.items()
        if found.get((kind, name)) != sql
    ]


def _schema(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """The statement that made each table and index, by its kind and name."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
    return {(kind, name): sql for kind, name, sql in rows}
