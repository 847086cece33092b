from __future__ import annotations

from typing import Any

import pytest

from custodes.overseer.config import Config
from custodes.overseer.probe import Verdict
from custodes.overseer.watch import (
    Condition,
    Watch,
    advance,
    healed_in_work,
    met_limit,
    pause,
    resting,
)
from custodes.supervision.record.clock import after
from support.overseer import MIDNIGHT, at, config, verdict

CONFIG = config(providers={"a": {"quota_reset": "daily"}})


def run(*verdicts: Verdict, step: float = 60.0, watch: Watch | None = None, begin: float = 0.0) -> Watch:
    watch = watch or Watch(provider="a")
    for number, each in enumerate(verdicts):
        watch = advance(watch, each, at(begin + number * step), CONFIG)
    return watch


def kinds(*names: Any) -> list[Verdict]:
    return [verdict(name) for name in names]


@pytest.mark.parametrize(
    ("story", "condition"),
    [
        (["good"], "well"),
        (["slow"], "unknown"),
        (["good", "slow"], "well"),
        (["good", "slow", "slow"], "well"),
        (["good", "slow", "slow", "slow"], "degraded"),
        (["good", "timeout", "timeout", "timeout"], "degraded"),
        (["good", "timeout", "good", "timeout", "timeout"], "well"),
        (["good", "down", "down"], "well"),
        (["good", "down", "down", "down"], "dead"),
        (["down", "down", "down"], "dead"),
        (["good", "down", "down", "timeout"], "degraded"),
        (["good", "down", "timeout", "down", "down"], "degraded"),
        (["good", "down", "timeout", "down", "down", "down"], "dead"),
        (["good", "limited"], "limited"),
        (["good", "down", "down", "limited", "down"], "limited"),
        (["limited", "down", "down", "down"], "dead"),
        (["dead-by-refusals"], "dead"),
        (["good", "needs_person"], "needs_person"),
        (["good", "misconfigured"], "misconfigured"),
        (["good"] + ["misconfigured"] * 9, "misconfigured"),
        (["misconfigured", "good"], "well"),
        (["misconfigured", "down"], "well"),
        (["limited", "misconfigured"], "limited"),
        (["good", "slow", "slow", "misconfigured", "slow"], "well"),
    ],
)
def test_the_table_of_conditions(story: list[str], condition: Condition) -> None:
    words = ["down"] * 3 if story == ["dead-by-refusals"] else story
    assert run(*kinds(*words)).condition == condition


@pytest.mark.parametrize("ill", [["limited"], ["needs_person"], ["down"] * 3, ["slow"] * 3])
def test_three_good_ones_a_minute_apart_heal_and_two_and_a_bad_one_do_not(ill: list[str]) -> None:
    sick = run(*kinds(*ill), step=1)
    assert run(*kinds("good", "good"), watch=sick, begin=100).sick
    assert run(*kinds("good", "good", "good"), watch=sick, begin=100).condition == "well"
    relapsed = run(*kinds("good", "good", "slow", "good", "good"), watch=sick, begin=100)
    assert (relapsed.sick, relapsed.good) == (True, 2)


def test_good_ones_closer_together_than_the_spacing_count_once() -> None:
    sick = run(*kinds("limited"))
    assert run(*kinds(*["good"] * 6), watch=sick, step=29, begin=100).sick
    assert run(*kinds(*["good"] * 7), watch=sick, step=29, begin=100).condition == "well"


def test_a_stated_wait_is_the_eta_and_nobody_asks_before_it() -> None:
    limited = run(verdict("limited", "429", wait=3_000))
    assert limited.eta(at(500)) == MIDNIGHT + 3_000
    assert (resting(limited, at(1), CONFIG), resting(limited, at(3_000), CONFIG)) == (2_999, 0)
    assert pause(limited, at(1), CONFIG) == 2_999


def test_a_stated_wait_of_more_than_a_day_is_asked_about_once_a_day_and_stays_the_eta() -> None:
    year = 366 * 86_400
    watch = run(verdict("limited", "429", wait=year))
    assert pause(watch, at(1), CONFIG) == 86_399
    again = advance(watch, verdict("limited", "429"), at(86_400), CONFIG)
    assert (pause(again, at(86_400), CONFIG), again.eta(at(86_400))) == (86_400, MIDNIGHT + year)
    assert run(*kinds("good", "good", "good"), watch=watch, begin=86_400).condition == "well"
    rebooted = type(at())("another", 3.0, MIDNIGHT + 86_000)
    assert resting(watch, rebooted, CONFIG) == 400


def test_a_known_reset_is_the_eta_where_no_wait_is_stated() -> None:
    assert run(verdict("limited", "429"), begin=3_600).eta(at(4_000)) == MIDNIGHT + 86_400


def test_before_a_reset_it_is_asked_ever_less_often_and_at_the_reset_at_once() -> None:
    watch = run(verdict("limited", "429"))
    now, asked = 0.0, []
    while now < 86_400:
        now += pause(watch, at(now), CONFIG)
        asked.append(now)
        watch = advance(watch, verdict("limited", "429"), at(now), CONFIG)
    assert asked[:5] == [300, 900, 2_100, 4_500, 8_100], "then hourly"
    assert len(asked) < 30, "not the 288 of a day"
    assert asked[-1] == 86_400, "and at the reset, not an hour later"


def test_a_cron_that_ticks_a_little_early_is_not_sent_away_for_a_whole_turn() -> None:
    watch = run(verdict("limited", "429"))
    assert resting(watch, at(250), CONFIG) > 0
    assert resting(watch, at(298), CONFIG) == 0


def test_a_suspect_is_asked_again_soon_and_the_dead_at_the_interval() -> None:
    assert pause(run(*kinds("good")), at(0), CONFIG) == 300
    assert pause(run(*kinds("good", "down")), at(60), CONFIG) == 60
    assert pause(run(*kinds("down", "down", "down")), at(120), CONFIG) == 300
    recovering = run(*kinds("good"), watch=run(*kinds("down", "down", "down")), begin=200)
    assert pause(recovering, at(200), CONFIG) == 60


def test_a_limit_met_in_work_outlasts_good_probes_until_its_wait_is_over() -> None:
    met = met_limit(run(*kinds("good")), after(1_000, at(0)), at(0))
    assert (met.condition, met.code, met.eta(at(0))) == ("limited", "429", MIDNIGHT + 1_000)
    early = run(*kinds(*["good"] * 6), watch=met, begin=60)
    assert (early.condition, early.good) == ("limited", 0)
    assert run(*kinds(*["good"] * 3), watch=early, begin=1_000).condition == "well"


def test_a_pool_that_heals_lets_good_probes_count_at_once() -> None:
    met = met_limit(run(*kinds("good")), after(100_000, at(0)), at(0))
    assert run(*kinds(*["good"] * 3), watch=healed_in_work(met), begin=60).condition == "well"
    probed = run(*kinds("limited"))
    assert healed_in_work(probed) == probed, "what a probe was told is no matter of the pool"


def test_a_model_is_absent_after_three_lists_without_it() -> None:
    named = verdict("good", served=("one", "a/gone"))
    without = verdict("good", served=("one",), absent=("gone",))
    assert not run(named, without, without).absent("gone")
    assert run(named, without, without, without).absent("gone")
    assert not run(named, without, without, without, named).absent("gone")


def test_a_model_that_was_never_listed_is_only_called_something_else() -> None:
    without = verdict("good", served=("one",), absent=("gone",))
    assert not run(*[without] * 9).absent("gone")


def test_a_stepped_wall_clock_moves_no_wait_and_a_reboot_grants_no_more_than_was_left() -> None:
    limited = run(verdict("limited", "429", wait=600))
    stepped = type(at())("boot", at(10).uptime, at(10).wall + 86_400)
    assert resting(limited, stepped, CONFIG) == 590
    rebooted = type(at())("another", 3.0, MIDNIGHT + 400)
    assert resting(limited, rebooted, CONFIG) == 200


def test_since_is_when_the_condition_began() -> None:
    assert run(*kinds("good", "good", "limited", "limited"), step=60).since == MIDNIGHT + 120


def test_recovery_is_as_the_file_says() -> None:
    once: Config = config(recovery={"checks": 1, "spacing": 0})
    sick = advance(Watch(provider="a"), verdict("limited"), at(0), once)
    assert advance(sick, verdict("good"), at(0), once).condition == "well"
