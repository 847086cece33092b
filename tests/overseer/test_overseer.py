"""The executor over a real database: acceptance O2 to O14 and what a crash leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from custodes.adapters.port import ProfileSetting
from custodes.store import Connection, StoreLocked
from support.overseen import GOOD, REFUSED, TIMEOUT, status, world
from support.overseer import config, seed_config

pytestmark = pytest.mark.anyio
TWO_PROFILES = {name: {"primary": "a/one", "fallbacks": ["b/two"]} for name in ("w", "v")}


async def test_a_limited_primary_is_left_and_returned_to_once_it_is_well(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        w.answers["a"] = status(429)
        await w.tick()
        assert w.model() == "b/two"
        (incident,) = await w.active()
        assert incident.action == "switch_to_fallback"
        assert (incident.provider, incident.model, incident.error_code) == ("a", "one", "429")
        assert (incident.old_model, incident.new_model) == ("a/one", "b/two")
        assert incident.profile_affected == "w"
        assert incident.timestamp == "2026-07-20T00:05:00Z"
        w.answers["a"] = GOOD
        await w.ticks(3)
        assert w.model() == "b/two", "well again, but inside the cooldown"
        await w.ticks(4)
        assert w.model() == "a/one"
        assert await w.active() == []
        back = (await w.incidents())[-1]
        assert (back.action, back.status, back.new_model) == ("switch_back", "resolved", "a/one")
        first = next(each for each in await w.incidents() if each.id == incident.id)
        assert (first.status, first.resolved_by, first.seconds) == ("resolved", "overseer", 1_800)


async def test_the_first_fallback_unhealthy_the_second_healthy_it_is_the_second(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers |= {"a": status(429), "b": status(402)}
        await w.tick()
        assert w.model() == "c/three"


async def test_a_fallback_that_dies_inside_the_cooldown_is_left(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(429)
        await w.tick(60)
        assert w.model() == "b/two"
        w.answers["b"] = status(403)
        await w.tick(60)
        assert w.model() == "c/three"
        assert [each.cause for each in await w.active()] == ["outage:a:w", "outage:b:w"]


async def test_three_good_probes_a_minute_apart_bring_it_back_once_and_two_and_a_bad_one_do_not(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, config(cooldown_minutes=0)) as w:
        w.answers["a"] = status(402)
        await w.tick(60)
        w.answers["a"] = GOOD
        await w.ticks(2, 60)
        w.answers["a"] = REFUSED
        await w.tick(60)
        w.answers["a"] = GOOD
        await w.ticks(2, 60)
        assert w.model() == "b/two"
        await w.tick(60)
        assert w.model() == "a/one"
        await w.ticks(10, 60)
        assert w.shelf.switches == [("w", "a/one", "b/two"), ("w", "b/two", "a/one")]


async def test_slow_once_is_nothing_and_slow_three_times_is_degraded_and_alerted_once(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        w.answers["a"] = TIMEOUT
        await w.tick()
        assert w.events() == []
        await w.ticks(5)
        assert w.overseer.watches["a"].condition == "degraded"
        assert (w.model(), w.events()) == ("a/one", ["opened outage:a:w"])
        assert w.told[0][1].action == "alert_only"


async def test_refused_three_times_in_a_row_is_dead_and_left_in_that_very_tick(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        w.answers["a"] = REFUSED
        await w.ticks(2)
        assert w.model() == "a/one"
        await w.tick()
        assert (w.overseer.watches["a"].condition, w.model()) == ("dead", "b/two")


async def test_a_misconfigured_probe_is_said_once_and_moves_nobody(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        w.answers["a"] = status(405)
        await w.ticks(12)
        assert (w.model(), w.shelf.switches, w.events()) == ("a/one", [], ["opened probe:a:"])
        w.answers["a"] = GOOD
        await w.tick()
        assert w.events()[1:] == ["resolved probe:a:"]


async def test_a_switch_back_inside_the_cooldown_is_an_alert_only_and_told_once(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick()
        w.answers["a"] = GOOD
        await w.ticks(2)
        (decision,) = await w.tick()
        assert (decision.action, decision.kind) == ("alert_only", "cooldown")
        await w.tick()
        assert w.events() == ["moved outage:a:w", "opened cooldown:a:w"]
        await w.ticks(4)
        assert sorted(w.events()[2:]) == [
            *("moved outage:a:w", "resolved cooldown:a:w", "resolved outage:a:w")
        ]


async def test_what_a_person_set_is_left_alone_and_said_once_until_they_set_the_primary(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        w.shelf.set_by_hand("w", "their/own")
        w.answers["a"] = status(429)
        await w.ticks(5)
        assert (w.model(), w.shelf.switches) == ("their/own", [])
        assert w.events().count("opened hand:a:w") == 1
        w.shelf.set_by_hand("w", "a/one")
        await w.tick()
        assert "resolved hand:a:w" in w.events()
        assert w.model() == "b/two", "taken up again, and moved off the limited one"


async def test_a_person_who_takes_over_during_an_outage_ends_its_incident(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(429)
        await w.tick()
        w.shelf.set_by_hand("w", "their/own")
        await w.tick()
        ended = next(each for each in await w.incidents() if each.cause == "outage:a:w")
        assert (ended.status, ended.resolved_by) == ("resolved", "a person, who set the profile by hand")


async def test_a_person_who_acts_between_the_reading_and_the_switch_wins(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.shelf.before_switch = lambda name: w.shelf.set_by_hand(name, "their/own")
        w.answers["a"] = status(429)
        await w.tick()
        w.shelf.before_switch = lambda _: None
        await w.ticks(3)
        assert w.model() == "their/own"
        assert {each.cause for each in await w.active()} == {"hand:a:w", "outage:a:"}


async def test_a_profile_that_is_missing_is_said_once_and_the_others_are_served(tmp_path: Path) -> None:
    async with world(tmp_path, config(fallback_matrix=TWO_PROFILES)) as w:
        w.shelf.broken.add("w")
        w.answers["a"] = status(429)
        await w.ticks(3)
        assert w.model("v") == "b/two"
        assert w.events() == ["moved outage:a:v", "opened problem::w"]
        w.shelf.broken.clear()
        await w.tick()
        assert w.events()[2:] == ["moved outage:a:w", "resolved problem::w"]


async def test_a_switch_without_effect_is_tried_again_ever_less_often_and_told_once(tmp_path: Path) -> None:
    tries: list[float] = []
    async with world(tmp_path, config(fallback_matrix=TWO_PROFILES)) as w:
        w.shelf.deaf.add("w")
        w.shelf.before_switch = lambda name: tries.append(w.seconds) if name == "w" else None
        w.answers["a"] = status(402)
        await w.ticks(60, 60)
        assert (w.model("w"), w.model("v")) == ("a/one", "b/two"), "the other profile was served"
        assert tries == [0, 60, 180, 420, 900, 1_860]
        assert w.events().count("opened problem::w") == 1
        assert w.overseer.records["w"].failed == "'w' still reads as a/one"
        w.shelf.deaf.clear()
        await w.ticks(40, 60)
        assert w.model("w") == "b/two"
        assert "resolved problem::w" in w.events()


async def test_a_provider_that_nobody_works_on_has_an_incident_of_its_own(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["b"] = status(403)
        await w.ticks(3)
        assert w.events() == ["opened outage:b:"]
        w.answers["b"] = GOOD
        await w.ticks(3)
        assert w.events()[1:] == ["resolved outage:b:"]


async def test_a_day_of_a_known_quota_has_the_right_eta_and_few_questions(tmp_path: Path) -> None:
    async with world(tmp_path, config(providers={"a": {"quota_reset": "daily"}}, check_interval=900)) as w:
        w.answers["a"] = status(429)
        await w.ticks(95, 900)
        (incident,) = await w.active()
        assert incident.recovery_eta == "2026-07-21T00:00:00Z"
        asked = [name for _, name, _ in w.asked]
        assert asked.count("a") < 30
        assert asked.count("b") == 95


async def test_one_of_two_behind_one_address_whose_model_is_no_longer_listed_is_left(tmp_path: Path) -> None:
    shared = {"health_url": "http://127.0.0.1:9/v1/models"}
    async with world(tmp_path, config(providers=dict.fromkeys("abc", shared))) as w:
        w.answers["a"] = status(200, body={"data": [{"id": "one"}, {"id": "b/two"}, {"id": "three"}]})
        await w.tick()
        w.answers["a"] = status(200, body={"data": [{"id": "b/two"}, {"id": "three"}]})
        await w.ticks(2)
        assert w.model() == "a/one"
        await w.tick()
        assert w.model() == "b/two"
        assert (await w.active())[0].error_code == "absent"


async def test_an_answer_has_only_those_profiles_read_that_may_work_on_its_provider(tmp_path: Path) -> None:
    rows = {
        "w": {"primary": "a/one", "fallbacks": ["b/two"]},
        "v": {"primary": "b/two"},
        "u": {"primary": "b/two", "last_resort": "c"},
    }
    async with world(tmp_path, config(fallback_matrix=rows)) as w:
        read: dict[str, list[str]] = {}
        await w.tick()
        for name in "abc":
            w.shelf.reads.clear()
            await w.hear(name)
            await w.overseer.act()
            read[name] = sorted(w.shelf.reads)
        assert read == {"a": ["w"], "b": ["u", "v", "w"], "c": ["u"]}


async def test_a_profile_that_is_due_by_the_clock_alone_is_read_before_it_moves(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick(60)
        w.answers["a"] = GOOD
        await w.ticks(3, 60)
        w.seconds += 3_600
        w.shelf.set_by_hand("w", "their/own")
        await w.overseer.act()
        assert w.model() == "their/own"
        assert w.overseer.records["w"].hand == "their/own"


async def test_a_later_wait_moves_the_expected_recovery(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(429, headers={"retry-after": "600"})
        await w.tick(600)
        w.answers["a"] = status(429, headers={"retry-after": "7200"})
        await w.tick()
        (incident,) = await w.active()
        assert incident.recovery_eta == "2026-07-20T02:10:00Z"


async def test_a_day_of_probes_sends_no_completion(tmp_path: Path) -> None:
    async with world(tmp_path, seed_config()) as w:
        await w.ticks(96, 900)
        assert {method for _, _, method in w.asked} == {"GET"}
        assert len(w.asked) == 96, "four providers at one address are one question"


async def test_in_a_dry_run_nothing_is_switched_and_no_incident_opened(tmp_path: Path) -> None:
    async with world(tmp_path, config(dry_run=True)) as w:
        w.answers["a"] = status(429)
        (decision,) = await w.tick()
        assert (decision.action, str(decision.to)) == ("switch_to_fallback", "b/two")
        assert (w.model(), await w.incidents(), w.shelf.switches) == ("a/one", [], [])


async def test_a_successor_goes_on_from_the_database(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(402)
        await w.tick()
        await w.successor().start()
        assert w.overseer.watches["a"].condition == "needs_person"
        w.answers["a"] = GOOD
        await w.tick()
        await w.successor().start()
        await w.ticks(6)
        assert w.model() == "a/one"
        assert len(w.shelf.switches) == 2


@pytest.mark.parametrize("switched", [False, True])
async def test_one_killed_in_a_switch_is_completed_or_undone_by_its_successor(
    tmp_path: Path, switched: bool
) -> None:
    class KilledError(BaseException):
        """Stands for kill -9: nothing after it runs."""

    def killed(_: str) -> None:
        raise KilledError

    async with world(tmp_path, config()) as w:
        if switched:
            w.shelf.after_switch = killed
        else:
            w.shelf.before_switch = killed
        w.answers["a"] = status(402)
        with pytest.raises(BaseExceptionGroup):
            await w.tick()
        assert await w.incidents() == []
        w.shelf.before_switch = w.shelf.after_switch = lambda _: None
        await w.successor().start()
        await w.tick()
        assert w.model() == "b/two"
        assert [each.cause for each in await w.active()] == ["outage:a:w"]
        assert w.events().count("moved outage:a:w") == 1
        assert len(w.shelf.switches) == 1


async def test_one_that_was_killed_half_way_through_its_fields_is_completed(tmp_path: Path) -> None:
    full = config(
        providers={
            name: {
                "switch": {"model": "{model}", "provider": f"p-{name}", "base_url": "http://127.0.0.1:1/v1"}
            }
            for name in "abc"
        }
    )

    class KilledError(BaseException):
        """Stands for kill -9 while the model is set and the provider is not."""

    def killed(profile: str) -> None:
        w.shelf.set_by_hand(profile, "two")
        raise KilledError

    async with world(tmp_path, full) as w:
        w.shelf.before_switch = killed
        w.answers["a"] = status(402)
        with pytest.raises(BaseExceptionGroup):
            await w.tick()
        w.shelf.before_switch = lambda _: None
        await w.successor().start()
        await w.tick()
        assert w.shelf.profiles["w"] == ProfileSetting(
            model="two", provider="p-b", base_url="http://127.0.0.1:1/v1"
        )
        assert w.overseer.records["w"].hand == ""


async def test_a_commit_that_fails_after_the_switch_is_made_up_for_by_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, config()) as w:
        await w.tick()
        real, after = w.database.write, False

        async def locked(fold: object, wait_s: float = 1.0) -> object:
            if after:
                raise StoreLocked(w.database.path, wait_s)
            return await real(fold, wait_s)  # type: ignore[arg-type]  # as it came

        def now_locked(_: str) -> None:
            nonlocal after
            after = True

        monkeypatch.setattr(w.database, "write", locked)
        w.shelf.after_switch = now_locked
        w.answers["a"] = status(402)
        with pytest.raises(StoreLocked):
            await w.tick()
        after = False
        w.shelf.after_switch = lambda _: None
        await w.tick()
        assert (w.model(), w.overseer.records["w"].hand) == ("b/two", "")
        assert [each.cause for each in await w.active()] == ["outage:a:w"]


async def test_torn_rows_count_as_none_and_the_others_serve(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["b"] = status(403)
        await w.tick()

        async def tear(connection: Connection) -> None:
            await connection.execute_fetchall(
                "UPDATE overseer_watches SET body = '{\"provi' WHERE name = 'a'"
            )
            await connection.execute_fetchall("UPDATE overseer_profiles SET body = '' WHERE name = 'w'")

        await w.database.write(tear)
        await w.successor().start()
        assert w.overseer.watches["a"].condition == "unknown"
        assert w.overseer.watches["b"].condition == "needs_person"
        await w.tick()
        assert w.model() == "a/one"


async def test_provider_model_and_address_move_together(tmp_path: Path) -> None:
    full = config(
        providers={
            name: {
                "switch": {
                    "model": "{model}",
                    "provider": f"p-{name}",
                    "base_url": f"http://127.0.0.1:{n}/v1",
                }
            }
            for n, name in enumerate("abc", 1)
        }
    )
    async with world(tmp_path, full) as w:
        w.answers["a"] = status(429)
        await w.tick()
        assert w.shelf.profiles["w"] == ProfileSetting(
            model="two", provider="p-b", base_url="http://127.0.0.1:2/v1"
        )


async def test_each_change_is_a_line_of_the_log(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        w.answers["a"] = status(429)
        await w.tick()
        lines = [
            json.loads(line) for line in (tmp_path / ".coding-os" / "supervisor.log").read_text().splitlines()
        ]
        assert [(line["event"], line["profile_affected"], line["new_model"]) for line in lines] == [
            ("moved", "w", "b/two")
        ]


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    async with world(tmp_path, config()) as w:
        (tmp_path / ".coding-os" / "supervisor.log").mkdir()
        w.answers["a"] = status(429)
        await w.tick()
        assert w.model() == "b/two"
        assert len(await w.active()) == 1
