"""An order to an overseer that runs, over a real database: who takes it, and what its asker is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from custodes.adapters.port import ProfileSetting
from custodes.overseer import daemon, hand_switch
from custodes.overseer.actuators import Actuators
from custodes.overseer.by_hand import SwitchOrder, SwitchRefused
from custodes.overseer.endpoint import Endpoint
from custodes.overseer.hand_switch import switch_by_hand
from custodes.overseer.holder import Errand, holding
from custodes.overseer.probe import Answer
from custodes.store import Database
from custodes.supervision.asks import requests
from custodes.supervision.asks.posted import posted
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from support.overseen import GOOD, Shelf
from support.overseer import config

pytestmark = pytest.mark.anyio
ORDER = SwitchOrder(profile="w", target="b/two", by="cli")


async def good(_: Endpoint, __: float) -> Answer:
    return GOOD


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """What every overseer here reads and sets."""
    found = Shelf({"w": ProfileSetting(model="a/one")})
    monkeypatch.setattr(Actuators, "_make", lambda *_: found)
    return found


async def test_the_overseer_that_runs_takes_it_and_answers(tmp_path: Path, shelf: Shelf) -> None:
    ready = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(daemon.run, tmp_path, config(), ask=good, started=ready.set))
        await ready.wait()
        done = await switch_by_hand(tmp_path, config(), ORDER)
        assert (done.new_model, done.held, shelf.profiles["w"].model) == ("b/two", True, "b/two")
        with pytest.raises(SwitchRefused) as caught:
            await switch_by_hand(tmp_path, config(), SwitchOrder(profile="w", target="b/no", by="cli"))
        assert caught.value.kind == "unknown"
        group.cancel_scope.cancel()


async def test_a_dry_run_that_runs_switches_nothing(tmp_path: Path, shelf: Shelf) -> None:
    ready = anyio.Event()
    async with anyio.create_task_group() as group:
        dry = config(dry_run=True)
        group.start_soon(partial(daemon.run, tmp_path, dry, ask=good, started=ready.set))
        await ready.wait()
        with pytest.raises(SwitchRefused, match="nothing is switched in a dry run"):
            await switch_by_hand(tmp_path, config(), ORDER)
        group.cancel_scope.cancel()
    assert shelf.switches == []


async def test_it_waits_for_one_that_takes_none_to_end_and_is_then_made(tmp_path: Path, shelf: Shelf) -> None:
    async with anyio.create_task_group() as group:
        async with holding(tmp_path, now, "tick") as (database, _):
            group.start_soon(switch_by_hand, tmp_path, config(), ORDER)
            await until_asked(database)
        assert shelf.switches == []
    assert shelf.switches == [("w", "a/one", "b/two")]


async def test_one_that_never_takes_it_is_told_of_and_nothing_is_switched_later(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hand_switch, "TAKEN_S", 0.0)
    async with holding(tmp_path, now) as (database, mine):
        with pytest.raises(SwitchRefused, match="takes no switch by hand") as caught:
            await switch_by_hand(tmp_path, config(), ORDER)
        assert caught.value.kind == "busy"
        assert await database.read(partial(requests.open_for, owner=mine.owner)) == []
    assert shelf.switches == []


@pytest.mark.parametrize("errand", ["tick", "switch"])
async def test_a_short_errand_that_does_not_end_is_named(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, errand: Errand
) -> None:
    monkeypatch.setattr(hand_switch, "TAKEN_S", 0.0)
    async with holding(tmp_path, now, errand):
        with pytest.raises(SwitchRefused, match=r"is at work here .*; ask again") as caught:
            await switch_by_hand(tmp_path, config(), ORDER)
        assert caught.value.kind == "busy"
    assert shelf.switches == []


async def test_one_that_is_ended_while_it_switches_says_so_to_who_asked(tmp_path: Path, shelf: Shelf) -> None:
    ready, switching, told = anyio.Event(), anyio.Event(), anyio.Event()

    async def ask() -> None:
        with pytest.raises(SwitchRefused, match="was ended while it switched"):
            await switch_by_hand(tmp_path, config(), ORDER)
        told.set()

    class Slow(Shelf):
        async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
            switching.set()
            await anyio.sleep_forever()

    shelf.__class__ = Slow
    async with anyio.create_task_group() as asking, anyio.create_task_group() as group:
        group.start_soon(partial(daemon.run, tmp_path, config(), ask=good, started=ready.set))
        await ready.wait()
        asking.start_soon(ask)
        await switching.wait()
        group.cancel_scope.cancel()
    assert told.is_set()


async def test_what_was_taken_by_one_that_began_anew_is_answered(tmp_path: Path, shelf: Shelf) -> None:
    database = await Database.open(tmp_path / DATABASE, MIGRATIONS)
    try:
        async with posted(database, this_process(), "switch", "w", ORDER) as request:
            await database.write(partial(requests.claim, ids=[request.request.id]))
            async with anyio.create_task_group() as group:
                group.start_soon(partial(daemon.run, tmp_path, config(), ask=good))
                reply = await request.reply(never)
                group.cancel_scope.cancel()
        assert reply is not None
        assert "had to begin anew" in reply
        assert shelf.switches == []
    finally:
        await database.aclose()


async def until_asked(database: Database) -> None:
    """An order to this process stands in the file."""
    with anyio.fail_after(60):
        while not await database.read(partial(requests.open_for, owner=this_process())):  # noqa: ASYNC110 - a row, no event
            await anyio.sleep(0.01)


async def never() -> bool:
    return False
