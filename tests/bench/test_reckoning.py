"""Medians, ratios of paired rounds, and verdicts."""

from __future__ import annotations

import msgspec
import pytest

from bench.suite.measure import Target
from bench.suite.reckoning import figure, ratio, ratios, verdicts
from bench.suite.results import Sample
from support.found import FLOOR, OURS, PEER, found


def test_a_figure_is_the_median_with_the_least_and_the_most() -> None:
    taken = figure(found(), found().measures[0], FLOOR)
    assert taken == (4e-6, 2e-6, 9e-6)


def test_a_ratio_is_of_the_processors_time_and_of_the_means_of_all_rounds() -> None:
    assert figure(found(), found().measures[0], OURS) == (5e-6, 3e-6, 9e-6)
    assert ratio(found(), found().measures[0], OURS) == pytest.approx(1.5)
    assert ratio(found(), found().measures[0], OURS, "seconds") == pytest.approx(17 / 15)


def test_one_that_was_asked_less_often_is_held_against_all_there_is() -> None:
    floor, ours, *others = found().samples
    less = msgspec.structs.replace(ours, rounds=ours.rounds[1:2])
    seen = msgspec.structs.replace(found(), samples=(floor, less, *others))
    assert ratio(seen, seen.measures[0], OURS) == pytest.approx(1.5)
    none = msgspec.structs.replace(ours, rounds=())
    seen = msgspec.structs.replace(found(), samples=(floor, none, *others))
    assert ratio(seen, seen.measures[0], OURS) is None


def test_a_ratio_to_another_size_is_the_contenders_own() -> None:
    assert ratio(found(), found().measures[1], OURS) == pytest.approx(2.0)
    assert ratio(found(), found().measures[1], FLOOR) is None


def test_a_base_is_not_held_against_itself_among_the_ratios() -> None:
    assert [(measure.title, who) for measure, who, _ in ratios(found())] == [
        ("one call", OURS),
        ("each of ten", OURS),
    ]


@pytest.mark.parametrize(("most", "met"), [(1.5000001, True), (1.4, False)])
def test_a_target_is_met_up_to_its_most(most: float, met: bool) -> None:
    (verdict,) = verdicts(found(most=most))
    assert verdict.met is met
    assert verdict.clock == pytest.approx(17 / 15)


def test_an_absolute_target_goes_by_the_figure_itself() -> None:
    target = Target(OURS, 4e-6, absolute=True)
    measure = msgspec.structs.replace(found().measures[0], targets=(target,))
    (verdict,) = verdicts(msgspec.structs.replace(found(), measures=(measure,)))
    assert (verdict.value, verdict.clock, verdict.met) == (3e-6, 5e-6, True)


def test_who_could_not_is_named_by_the_verdict() -> None:
    measure = msgspec.structs.replace(found().measures[0], targets=(Target(PEER, 1),))
    (verdict,) = verdicts(msgspec.structs.replace(found(), measures=(measure,)))
    assert (verdict.value, verdict.met) == (None, False)
    assert verdict.why == "a peer: cannot be installed: no disk"
    samples = (*found().samples[1:], Sample(FLOOR, "one", 1, cannot="OSError: full"))
    (verdict,) = verdicts(msgspec.structs.replace(found(), samples=samples))
    assert verdict.why == "by hand: OSError: full"
