"""Who is asked in which round, and which cases have their rounds together."""

from __future__ import annotations

import pytest

from bench.suite.measure import Base, Measure
from bench.suite.pace import LEAST_ASKS, PACE_S, by_base, by_place, due


def asked(rounds: int, each_s: float) -> list[int]:
    """The rounds in which one is asked that takes so long for an ask."""
    found: list[int] = []
    for number in range(rounds):
        if due(number, rounds, len(found), each_s):
            found.append(number)
    return found


def test_one_that_keeps_the_pace_is_asked_in_every_round() -> None:
    assert asked(30, PACE_S) == list(range(30))


def test_one_that_takes_longer_is_asked_in_some_as_far_apart_as_another() -> None:
    assert asked(12, 2.9 * PACE_S) == [0, 3, 6, 9]
    assert asked(30, 60.0) == [0, 8, 15, 23]


@pytest.mark.parametrize("rounds", [1, 2, LEAST_ASKS])
def test_a_few_rounds_are_for_all(rounds: int) -> None:
    assert asked(rounds, 60.0) == list(range(rounds))


def test_what_has_one_base_is_together_whatever_comes_between() -> None:
    one, other = Measure("a", 1, "one"), Measure("b", 1, "other")
    tenfold = Measure("a", 10, "ten", base=Base(size=1))
    across = Measure("c", 1, "across", base=Base(case="b"))
    joins = Measure("a", 1, "joins", base=Base(case="c"))
    assert by_base([one, other, tenfold, across]) == [[one, tenfold], [other, across]]
    assert by_base([one, other, tenfold, across, joins]) == [[other, across, one, tenfold, joins]]


def test_a_base_of_another_contender_keeps_a_case_to_itself() -> None:
    one, other = Measure("a", 1, "one", base=Base("by hand")), Measure("b", 1, "other", base=Base("by hand"))
    assert by_base([one, other]) == [[one], [other]]


def test_figures_of_one_ask_are_one() -> None:
    one, other, memory = Measure("a", 1, "one"), Measure("b", 1, "other"), Measure("a", 1, "m", key="bytes")
    assert list(by_place([one, other, memory])) == [[one, memory], [other]]
