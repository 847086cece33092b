"""A profile switched by hand: the rule, and the executor that follows it over a real database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from custodes.adapters.port import ProfileSetting
from custodes.overseer.by_hand import RefusalKind, SwitchOrder, SwitchRefused
from custodes.overseer.incident import Incident
from custodes.overseer.journal import Journal
from custodes.overseer.overseer import Overseer
from custodes.supervision.record.clock import Now
from support.overseen import GOOD, status, world
from support.overseer import config

pytestmark = pytest.mark.anyio


def order(target: str, profile: str = "w", *, force: bool = False, was: str = "") -> SwitchOrder:
    return SwitchOrder(profile=profile, target=target, by="cli", force=force, was=was)


async def refused(overseer: Overseer, asked: SwitchOrder) -> tuple[RefusalKind, str]:
    with pytest.raises(SwitchRefused) as caught:
        await overseer.switch(asked)
    return caught.value.kind, str(caught.value)


async def test_it_is_held_there_whatever_happens_to_either_provider(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        done = await w.overseer.switch(order("b/two"))
        assert (done.old_model, done.new_model, done.held, done.moved) == ("a/one", "b/two", True, True)
        w.answers |= {"a": status(402), "b": status(429)}
        await w.ticks(5)
        w.answers |= {"a": GOOD, "b": GOOD}
        await w.ticks(20)
        assert w.shelf.switches == [("w", "a/one", "b/two")]
        (incident,) = await w.active()
        assert (incident.action, incident.old_model, incident.new_model) == (
            *("switch_to_fallback", "a/one", "b/two"),
        )
        assert (incident.cause, incident.error_code, incident.by) == ("hand:a:w", "hand", "cli")


async def test_a_successor_leaves_it_alone_too(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.overseer.switch(order("b/two"))
        await w.successor().start()
        w.answers["b"] = status(402)
        await w.ticks(3)
        assert w.model() == "b/two"
        assert "a person holds it on b/two" in w.overseer.decisions()[0].why


async def test_each_switch_is_a_line_of_the_log_that_says_whose_it_was(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.overseer.switch(order("b/two"))
        await w.overseer.switch(order("primary"))
        log = (tmp_path / ".coding-os" / "supervisor.log").read_text()
        lines = [json.loads(line) for line in log.splitlines()]
        assert [(line["event"], line["action"], line["by"], line["status"]) for line in lines] == [
            ("moved", "switch_to_fallback", "cli", "active"),
            ("moved", "switch_back", "cli", "resolved"),
            ("resolved", "switch_to_fallback", "cli", "resolved"),
        ]


async def test_it_is_done_though_what_it_ends_cannot_be_kept_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, config()) as w:

        async def write(_: Journal, __: str, ___: Incident, ____: Now) -> None:
            await w.database.aclose()

        monkeypatch.setattr(Journal, "write", write)  # told of each move, once that is on the disk
        assert (await w.overseer.switch(order("b/two"))).moved
        assert w.model() == "b/two"


async def test_on_its_primary_again_it_is_the_overseers_again(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        await w.overseer.switch(order("c/three"))
        done = await w.overseer.switch(order("primary"))
        assert (w.model(), done.held, await w.active()) == ("a/one", False, [])
        w.answers["a"] = status(402)
        await w.tick()
        assert w.model() == "b/two"


async def test_auto_takes_the_first_of_the_row_that_is_well_and_gives_it_back(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick()
        await w.overseer.switch(order("c/three"))
        done = await w.overseer.switch(order("auto"))
        assert (done.new_model, done.held) == ("b/two", False)
        w.answers["a"] = GOOD
        await w.ticks(10)
        assert w.model() == "a/one"


async def test_a_switch_by_hand_is_followed_by_a_cooldown(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick(60)
        w.answers["a"] = GOOD
        await w.ticks(2, 60)
        await w.overseer.switch(order("auto"))
        await w.ticks(10, 60)
        assert w.model() == "b/two", "well again, but moved lately"


async def test_the_primary_itself_can_be_held_while_its_provider_is_sick(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(429)
        await w.tick()
        kind, why = await refused(w.overseer, order("primary"))
        assert (kind, "would be left again at once" in why) == ("unwell", True)
        kind, why = await refused(w.overseer, order("a/one"))
        assert (kind, why) == (
            "unwell",
            "a/one is limited (over its limit); with 'force' 'w' is switched to it all the same",
        )
        await w.overseer.switch(order("a/one", force=True))
        await w.ticks(3)
        assert w.model() == "a/one"
        assert {each.cause for each in await w.active()} == {"outage:a:", "hand:a:w"}


async def test_what_the_overseer_moved_a_profile_to_can_be_held_there_without_a_move(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick()
        done = await w.overseer.switch(order("b/two"))
        assert (done.moved, done.changed, done.held) == (False, True, True)
        assert sorted(w.events()[1:]) == ["opened hand:a:w", "opened outage:a:", "resolved outage:a:w"]
        again = await w.overseer.switch(order("b/two"))
        assert not again.changed
        await w.overseer.switch(order("auto"))
        assert w.overseer.records["w"].hand == ""
        ended = next(each for each in await w.incidents() if each.cause == "hand:a:w")
        assert (ended.status, ended.resolved_by) == ("resolved", "a person (cli)")
        assert len(w.shelf.switches) == 1


async def test_another_hand_that_sets_the_primary_gives_it_back_and_any_other_model_does_not(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, config()) as w:
        await w.overseer.switch(order("b/two"))
        w.shelf.set_by_hand("w", "c/three")
        await w.tick()
        assert w.overseer.records["w"].hand == "c/three"
        w.shelf.set_by_hand("w", "a/one")
        w.answers["a"] = status(402)
        await w.tick()
        assert w.model() == "b/two"


async def test_a_profile_with_a_strangers_model_is_switched_from_that(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.shelf.set_by_hand("w", "their/own")
        done = await w.overseer.switch(order("auto"))
        assert (done.old_model, done.new_model, w.model()) == ("their/own", "a/one", "a/one")


async def test_nothing_is_switched_that_is_another_than_the_person_saw(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.overseer.switch(order("c/three"))
        kind, why = await refused(w.overseer, order("b/two", was="a/one"))
        assert (kind, "'w' is on c/three by now, and no longer on a/one" in why) == ("stale", True)
        await w.overseer.switch(order("b/two", was="c/three"))
        assert w.model() == "b/two"


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        (order("b/two", "v"), "unknown", "there is no profile 'v' in supervisor.yaml"),
        (order("b/too"), "unknown", "did you mean 'b/two'?"),
        (order("primry"), "unknown", "did you mean 'primary'?"),
        (order("d/four"), "unknown", "'w' cannot be switched to 'd/four'"),
        (order("d/four", force=True), "unknown", "'w' cannot be switched to 'd/four'"),
        (order("b/--option", force=True), "unknown", "cannot be switched"),
        (order("b/new"), "unknown", "neither supervisor.yaml nor b itself names a model 'new'"),
    ],
)
async def test_a_mistake_is_said_with_what_would_work(
    tmp_path: Path, asked: SwitchOrder, kind: RefusalKind, words: str
) -> None:
    async with world(tmp_path, config()) as w:
        found, why = await refused(w.overseer, asked)
        assert found == kind
        assert words in why
        assert w.shelf.switches == []


async def test_a_model_that_nothing_names_is_taken_by_force_and_one_that_is_served_without(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["b"] = status(200, body={"data": [{"id": "two"}, {"id": "served"}]})
        await w.tick()
        await w.overseer.switch(order("b/served"))
        assert w.model() == "b/served"
        await w.overseer.switch(order("b/new", force=True))
        assert w.model() == "b/new"


async def test_provider_model_and_address_move_together_and_back(tmp_path: Path) -> None:
    full = {
        name: {
            "switch": {"model": "{model}", "provider": f"p-{name}", "base_url": f"http://127.0.0.1:{n}/v1"}
        }
        for n, name in enumerate("abc", 1)
    }
    async with world(tmp_path, config(providers=full)) as w:
        await w.overseer.switch(order("b/two"))
        assert w.shelf.profiles["w"] == ProfileSetting(
            model="two", provider="p-b", base_url="http://127.0.0.1:2/v1"
        )
        await w.tick()
        assert w.overseer.records["w"].model == "b/two"


async def test_one_that_cannot_be_read_or_set_is_refused_with_the_reason_and_nothing_is_kept(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, config()) as w:
        w.shelf.deaf.add("w")
        assert await refused(w.overseer, order("b/two")) == ("failed", "'w' still reads as a/one")
        w.shelf.deaf.clear()
        w.shelf.broken.add("w")
        assert await refused(w.overseer, order("b/two")) == ("failed", "there is no profile 'w'")
        w.shelf.broken.clear()
        await w.successor().start()
        await w.tick()
        assert (w.model(), w.overseer.records["w"].hand, await w.incidents()) == ("a/one", "", [])


async def test_a_person_who_acts_between_the_reading_and_the_switch_wins(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.shelf.before_switch = lambda name: w.shelf.set_by_hand(name, "their/own")
        kind, why = await refused(w.overseer, order("b/two"))
        assert (kind, why) == ("failed", "'w' was set to their/own meanwhile")


async def test_in_a_dry_run_nothing_is_switched(tmp_path: Path) -> None:
    async with world(tmp_path, config(dry_run=True)) as w:
        kind, why = await refused(w.overseer, order("b/two"))
        assert (kind, "nothing is switched in a dry run" in why) == ("failed", True)


async def test_other_profiles_are_not_moved_on_what_was_last_known(tmp_path: Path) -> None:
    rows = {name: {"primary": "a/one", "fallbacks": ["b/two"]} for name in ("w", "v")}
    async with world(tmp_path, config(fallback_matrix=rows)) as w:
        await w.tick()
        w.answers["a"] = status(402)
        await w.hear("a")
        await w.overseer.switch(order("b/two"))
        assert (w.model("w"), w.model("v")) == ("b/two", "a/one")
        await w.tick()
        assert w.model("v") == "b/two"


@pytest.mark.parametrize("switched", [False, True])
async def test_one_killed_in_it_is_completed_or_undone_and_stays_held(tmp_path: Path, switched: bool) -> None:
    class KilledError(BaseException):
        """Stands for kill -9: nothing after it runs."""

    def killed(_: str) -> None:
        raise KilledError

    async with world(tmp_path, config()) as w:
        if switched:
            w.shelf.after_switch = killed
        else:
            w.shelf.before_switch = killed
        with pytest.raises(KilledError):
            await w.overseer.switch(order("b/two"))
        w.shelf.before_switch = w.shelf.after_switch = lambda _: None
        await w.successor().start()
        w.answers["b"] = status(402)
        await w.tick()
        held = w.overseer.records["w"].held
        assert (w.model(), str(held)) == (("b/two", "b/two") if switched else ("a/one", "None"))
        assert ("hand:a:w" in {each.cause for each in await w.active()}) is switched
