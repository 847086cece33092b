from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from custodes.overseer import holder
from custodes.overseer.holder import AlreadyRunning
from custodes.store import Connection, Database
from custodes.supervision.record.clock import Now, now
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.record.schema import MIGRATIONS
from support.overseer import at

pytestmark = pytest.mark.anyio
ME = this_process()
DEAD = msgspec.structs.replace(ME, started=ME.started - 1)
ELSEWHERE = Owner(1, 1.0, ME.boot, "pid:[of another container]")


async def test_one_overseer_holds_a_project_until_it_leaves_or_is_proven_dead(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "db", MIGRATIONS)
    try:
        mine = await holder.take(database, now())
        with pytest.raises(AlreadyRunning, match=f"pid {ME.pid}"):
            await holder.take(database, now())
        await holder.leave(database, mine)
        await holder.take(database, now(), DEAD)
        mine = await holder.take(database, now())
        await holder.leave(database, mine)
        await holder.take(database, now(), msgspec.structs.replace(ME, boot="an earlier boot"))
        await holder.take(database, now())
    finally:
        await database.aclose()


async def test_one_in_another_container_is_taken_for_gone_only_after_its_silence(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "db", MIGRATIONS)

    def later(seconds: float) -> Now:
        return Now(ME.boot, 1_000 + seconds, at().wall + seconds)

    try:
        there = await holder.take(database, later(0), ELSEWHERE)
        await holder.beat(database, there, later(100))
        with pytest.raises(AlreadyRunning):
            await holder.take(database, later(399))
        mine = await holder.take(database, later(400))
        with pytest.raises(AlreadyRunning):
            await holder.beat(database, there, later(401))
        await holder.leave(database, there)
        await holder.beat(database, mine, later(402))
    finally:
        await database.aclose()


async def test_a_torn_row_holds_nothing(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "db", MIGRATIONS)

    async def tear(connection: Connection) -> None:
        await connection.execute_fetchall("INSERT INTO overseer_holder VALUES (1, '{')")

    try:
        await database.write(tear)
        await holder.take(database, now())
    finally:
        await database.aclose()


async def test_a_project_that_cannot_be_let_go_changes_nothing_of_how_the_block_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with holder.holding(tmp_path, now) as (database, _):
        await database.aclose()
    assert "is held until this process ends" in caplog.text
