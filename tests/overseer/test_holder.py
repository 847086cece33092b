from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from custodes.overseer import holder
from custodes.overseer.holder import AlreadyRunning
from custodes.store import Connection, Database
from custodes.supervision.record.clock import Now, now
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
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


async def test_a_switch_by_hand_that_could_not_let_go_holds_the_project_no_longer_than_it_may_take(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A Hub whose disk was full at that moment runs on for weeks."""
    async with holder.holding(tmp_path, now, "switch") as (database, _):
        await database.aclose()
    assert "is held until the switch is over for sure" in caplog.text
    here = now()

    def later(seconds: float) -> Now:
        return Now(here.boot, here.uptime + seconds, here.wall + seconds)

    database = await Database.open(tmp_path / DATABASE, MIGRATIONS)
    try:
        with pytest.raises(AlreadyRunning, match=f"a switch by hand is at work here .pid {ME.pid}"):
            await holder.take(database, later(holder.SWITCH_S - 5))
        await holder.take(database, later(holder.SWITCH_S + 5))
    finally:
        await database.aclose()


@pytest.mark.parametrize("errand", ["tick", "switch"])
async def test_an_overseer_that_begins_beside_a_short_errand_waits_for_its_end(
    tmp_path: Path, errand: holder.Errand, caplog: pytest.LogCaptureFixture
) -> None:
    held = anyio.Event()

    async def overseer() -> None:
        async with holder.holding(tmp_path, now):
            held.set()

    async with anyio.create_task_group() as group:
        async with holder.holding(tmp_path, now, errand):
            group.start_soon(overseer)
            with anyio.fail_after(60):
                while "waiting" not in caplog.text:  # noqa: ASYNC110 - a line of the log, no event
                    await anyio.sleep(0.01)
            assert not held.is_set()
    assert held.is_set()


async def test_a_short_errand_beside_another_says_who_is_at_work_and_waits_for_nobody(tmp_path: Path) -> None:
    async with holder.holding(tmp_path, now, "tick"):
        with pytest.raises(AlreadyRunning, match="a tick of the overseer is at work here"):
            async with holder.holding(tmp_path, now, "tick"):
                pytest.fail("it has it")


async def test_an_overseer_waits_for_a_moment_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "MOMENT_S", 0.0)
    async with holder.holding(tmp_path, now, "tick"):
        with pytest.raises(AlreadyRunning, match="a tick of the overseer is at work here"):
            async with holder.holding(tmp_path, now):
                pytest.fail("it has it")
