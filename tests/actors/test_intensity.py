"""Intensity as a pure rule: counting within a period, backoff, and settings that could never work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.actors import Intensity
from custodes.actors.intensity import Crash, judge


def admitted(intensity: Intensity, times: Sequence[float]) -> list[bool]:
    history: tuple[Crash, ...] = ()
    answers = []
    for at in times:
        verdict = judge(intensity, history, Crash(at, ValueError()))
        history = verdict.history
        answers.append(verdict.delay is not None)
    return answers


def test_as_many_restarts_as_stated_are_admitted_within_a_period() -> None:
    assert admitted(Intensity(restarts=2, period=5), [0, 1, 2]) == [True, True, False]


def test_a_crash_a_whole_period_old_counts_no_more() -> None:
    assert admitted(Intensity(restarts=1, period=5), [0, 5, 9.9]) == [True, True, False]


def test_zero_restarts_fail_at_the_first_crash() -> None:
    assert admitted(Intensity(restarts=0), [0]) == [False]


@given(st.integers(0, 4), st.lists(st.integers(0, 30), max_size=20))
def test_no_period_ever_holds_more_restarts_than_stated(restarts: int, times: list[int]) -> None:
    intensity = Intensity(restarts=restarts, period=5)
    times = sorted(times)
    answers = admitted(intensity, times)
    restarted = answers.index(False) if False in answers else len(times)
    for index in range(restarted):
        assert sum(times[index] - earlier < 5 for earlier in times[: index + 1]) <= restarts
    if restarted < len(times):
        within = sum(times[restarted] - earlier < 5 for earlier in times[:restarted])
        assert within == restarts, "and it is not given up early"


def test_the_history_holds_the_period_and_no_more() -> None:
    intensity = Intensity(restarts=100, period=5, backoff=0)
    history: tuple[Crash, ...] = ()
    for second in range(1000):
        history = judge(intensity, history, Crash(second, ValueError())).history
    assert [crash.at for crash in history] == [995, 996, 997, 998, 999]


def test_backoff_doubles_up_to_its_maximum() -> None:
    intensity = Intensity(restarts=9, period=60, backoff=0.5, backoff_maximum=3)
    assert [intensity.delay(earlier) for earlier in (0, 1, 2, 3, 10_000)] == [0.5, 1, 2, 3, 3]
    assert Intensity(backoff=0).delay(5) == 0


@pytest.mark.parametrize(
    ("intensity", "words"),
    [
        (Intensity(restarts=-1), "restarts must be 0 or more"),
        (Intensity(period=0), "period must be a positive"),
        (Intensity(period=float("inf")), "period must be a positive"),
        (Intensity(backoff=-1), "backoff must lie between"),
        (Intensity(backoff=2, backoff_maximum=1), "backoff must lie between"),
        (Intensity(restarts=5, period=5, backoff=1), "the intensity could never be exceeded"),
    ],
)
def test_what_cannot_work_is_said(intensity: Intensity, words: str) -> None:
    problem = intensity.problem()
    assert problem is not None
    assert words in problem


def test_the_defaults_work() -> None:
    assert Intensity().problem() is None
