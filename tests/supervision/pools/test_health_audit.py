"""Clearing is an operator's override, and is written down."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from custodes.store import StoreTooNew
from custodes.supervision.pools.admission import Snapshot
from custodes.supervision.pools.health_file import clear_in_file
from custodes.supervision.pools.health_view import HealthView
from custodes.supervision.pools.pool_table import read_health
from custodes.supervision.record.audit import LOG
from support.health import world

pytestmark = pytest.mark.anyio


def lines(project: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (project / LOG).read_text().splitlines()]


async def test_a_clear_says_who_when_and_what(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a", "one:b", "two:c")
        assert await clear_in_file(tmp_path, "one", "cli") == ("one:a", "one:b")
        assert await clear_in_file(tmp_path, "two:c", "hub") == ("two:c",)
        assert await clear_in_file(tmp_path, "none", "mcp") == ()
        for pool in ("one:a", "one:b", "two:c"):
            await w.admitted(pool)
    first, second, third = lines(tmp_path)
    assert datetime.fromisoformat(str(first.pop("at"))).utcoffset() is not None
    assert first == {"by": "cli", "action": "health.clear", "target": "one", "detail": ["one:a", "one:b"]}
    assert (second["by"], second["target"]) == ("hub", "two:c")
    assert third["detail"] == []
    assert (tmp_path / LOG).stat().st_mode & 0o777 == 0o600


async def test_a_clear_that_the_store_refuses_is_not_written_down(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
    with closing(sqlite3.connect(w.database.path, isolation_level=None)) as other:
        other.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreTooNew):
        await clear_in_file(tmp_path, "one", "cli")
    assert not (tmp_path / LOG).exists()


async def test_a_surface_without_a_tree_sees_what_the_actor_sees(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        await w.opened("one:a")
        seen = await w.health.ask(Snapshot())
        assert isinstance(seen, HealthView)
        assert await w.database.read(lambda connection: read_health(connection, w.clock())) == seen
