from __future__ import annotations

from typing import Any

import msgspec
import pytest

from custodes.adapters.port import ProfileSetting
from custodes.overseer.config import Choice, Config
from custodes.overseer.decide import Decision, ProfileRecord, decide, taken_up
from custodes.overseer.watch import Condition, Watch
from custodes.supervision.record.clock import after
from support.overseer import at, config

ONE, TWO, THREE = Choice("a", "one"), Choice("b", "two"), Choice("c", "three")
CONFIG = config()


def watches(
    a: Condition = "well", b: Condition = "well", c: Condition = "well", **more: Any
) -> dict[str, Watch]:
    found = {name: Watch(provider=name, condition=each) for name, each in (("a", a), ("b", b), ("c", c))}
    for name, changes in more.items():
        found[name[0]] = msgspec.structs.replace(found[name[0]], **changes)
    return found


def decided(
    choice: Choice | None,
    stands: dict[str, Watch],
    *,
    cooldown: float = 0.0,
    config: Config = CONFIG,
    **record: Any,
) -> Decision:
    known = ProfileRecord(
        profile="w", choice=choice, cooldown=after(cooldown, at()) if cooldown else None, **record
    )
    return decide(known, config.fallback_matrix["w"], config, stands, at())


def moved(*args: Any, **kwargs: Any) -> tuple[str, Choice | None]:
    found = decided(*args, **kwargs)
    return found.action, found.to


SICK: list[Condition] = ["limited", "needs_person", "dead"]


@pytest.mark.parametrize("ill", SICK)
def test_a_sick_primary_is_left_for_the_first_healthy_in_order(ill: Condition) -> None:
    assert moved(ONE, watches(ill)) == ("switch_to_fallback", TWO)


@pytest.mark.parametrize("unhealthy", [*SICK, "degraded", "unknown", "misconfigured"])
def test_where_the_first_fallback_is_unhealthy_it_is_the_second(unhealthy: Condition) -> None:
    assert moved(ONE, watches("limited", unhealthy)) == ("switch_to_fallback", THREE)


@pytest.mark.parametrize("ill", SICK)
def test_a_fallback_that_dies_inside_the_cooldown_is_left(ill: Condition) -> None:
    assert moved(TWO, watches("limited", ill), cooldown=1_000) == ("switch_to_fallback", THREE)
    assert moved(TWO, watches("well", ill), cooldown=1_000) == ("switch_back", ONE)


def test_between_two_that_work_the_cooldown_allows_an_alert_only() -> None:
    found = decided(TWO, watches(), cooldown=1_000)
    assert (found.action, found.kind, found.to) == ("alert_only", "cooldown", None)
    assert "stays on b/two for 17 min more" in found.why
    assert moved(TWO, watches()) == ("switch_back", ONE)


@pytest.mark.parametrize("unsure", ["unknown", "misconfigured"])
def test_ignorance_moves_nothing(unsure: Condition) -> None:
    assert moved(ONE, watches(unsure)) == ("none", None)
    assert moved(TWO, watches(unsure)) == ("none", None)


def test_nothing_healthy_is_said_and_nothing_moves() -> None:
    found = decided(ONE, watches("dead", "limited", "needs_person"))
    assert (found.action, found.kind, found.about) == ("alert_only", "outage", ONE)


def test_the_degraded_are_ranked_last_but_before_the_dead() -> None:
    assert moved(ONE, watches("dead", "degraded", "dead")) == ("switch_to_fallback", TWO)
    assert moved(ONE, watches("dead", "degraded", "well")) == ("switch_to_fallback", THREE)


def test_a_suspect_is_chosen_only_after_the_clear_ones() -> None:
    assert moved(ONE, watches("dead", b_={"strikes": 1})) == ("switch_to_fallback", THREE)
    assert moved(ONE, watches("dead", "well", "dead", b_={"strikes": 1})) == ("switch_to_fallback", TWO)
    assert moved(TWO, watches(a_={"strikes": 1})) == ("none", None), "not back to a suspect"


def test_a_degraded_one_is_left_only_where_the_policy_says_so_and_a_clear_one_is_there() -> None:
    leaving = config(switch_degraded=True)
    assert moved(ONE, watches("degraded")) == ("alert_only", None)
    assert moved(ONE, watches("degraded"), config=leaving) == ("switch_to_fallback", TWO)
    assert moved(ONE, watches("degraded"), config=leaving, cooldown=9) == ("alert_only", None)
    assert moved(ONE, watches("degraded", "degraded", "dead"), config=leaving) == ("alert_only", None)
    assert moved(TWO, watches("well", "degraded")) == ("switch_back", ONE)


def test_the_last_resort_is_any_well_model_of_its_provider_after_the_row() -> None:
    rows = config(row={"fallbacks": ["b/two"], "last_resort": "c"}, providers={"c": {"models": ["x", "y"]}})
    assert moved(ONE, watches("dead", "dead"), config=rows) == ("switch_to_fallback", Choice("c", "x"))
    assert moved(ONE, watches("dead"), config=rows) == ("switch_to_fallback", TWO)
    gone = watches("dead", "dead", c_={"missing": {"x": 3}})
    assert moved(ONE, gone, config=rows) == ("switch_to_fallback", Choice("c", "y"))


def test_a_last_resort_may_be_a_model_that_only_the_provider_itself_names() -> None:
    rows = config(row={"fallbacks": [], "last_resort": "b"})
    served = watches("dead", b_={"served": ("b/free", "other")})
    assert moved(ONE, served, config=rows) == ("switch_to_fallback", Choice("b", "free"))
    stays = watches("dead", b_={"served": ("b/free",)})
    assert moved(Choice("b", "free"), stays, config=rows) == ("none", None)


def test_a_model_no_longer_served_is_left_as_a_dead_one_is() -> None:
    assert moved(ONE, watches(a_={"missing": {"one": 3}})) == ("switch_to_fallback", TWO)


def test_what_a_person_set_is_left_alone_whatever_happens() -> None:
    found = decided(ONE, watches("dead"), hand="their-own")
    assert (found.action, found.kind, found.to) == ("alert_only", "hand", None)
    assert "their-own" in found.why
    assert "set back to a/one" in found.why


def test_a_profile_that_cannot_be_read_is_left_alone() -> None:
    assert decided(ONE, watches("dead"), problem="there is no profile 'w'").kind == "problem"


def up(record: ProfileRecord, model: str, config: Config = CONFIG) -> ProfileRecord:
    return taken_up(record, ProfileSetting(model=model), config.fallback_matrix["w"], config, watches())


def test_at_the_first_sight_any_choice_of_the_row_is_taken_as_it_is_found() -> None:
    fresh = ProfileRecord(profile="w")
    assert [up(fresh, str(each)).choice for each in (ONE, TWO, THREE)] == [ONE, TWO, THREE]
    assert up(fresh, "x").hand == "x"
    assert up(fresh, "").hand == "no model"


def test_later_only_its_own_setting_and_the_primary_are_the_overseers() -> None:
    ours = ProfileRecord(profile="w", choice=TWO)
    assert up(ours, "b/two").hand == ""
    assert up(ours, "c/three").hand == "c/three", "in the row, but not set by the overseer"
    returned = up(msgspec.structs.replace(ours, hand="c/three"), "a/one")
    assert (returned.choice, returned.hand) == (ONE, "")


def test_provider_and_address_are_part_of_what_is_compared_where_they_are_stated() -> None:
    full = config(
        providers={
            name: {
                "switch": {"model": "{model}", "provider": "custom", "base_url": f"http://127.0.0.1:{n}/v1"}
            }
            for n, name in enumerate("abc", 1)
        }
    )
    record, row = ProfileRecord(profile="w"), full.fallback_matrix["w"]
    here = ProfileSetting(model="one", provider="custom", base_url="http://127.0.0.1:1/v1")
    assert taken_up(record, here, row, full, watches()).choice == ONE
    half = msgspec.structs.replace(here, base_url="http://127.0.0.1:2/v1")
    assert taken_up(record, half, row, full, watches()).hand == str(half)


def test_a_choice_whose_provider_left_the_file_is_looked_for_anew() -> None:
    gone = ProfileRecord(profile="w", choice=Choice("z", "old"))
    assert up(gone, "b/two").choice == TWO
    assert up(gone, "z/old").hand == "z/old"
