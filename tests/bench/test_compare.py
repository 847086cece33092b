"""Two runs beside one another."""

from __future__ import annotations

import msgspec

from bench.suite.compare import comparison
from bench.suite.results import Found, Results, Sample
from support.found import OURS, found, rounds


def with_ours(*figures: tuple[float, float]) -> Found:
    samples = (found().samples[0], Sample(OURS, "one", 1, rounds(*figures)), found().samples[2])
    return msgspec.structs.replace(found(), samples=samples)


def test_a_machine_that_is_twice_as_slow_changes_no_ratio() -> None:
    slow = msgspec.structs.replace(
        found(),
        samples=tuple(
            msgspec.structs.replace(
                each, rounds=tuple({key: 2 * value for key, value in one.items()} for one in each.rounds)
            )
            for each in found().samples
        ),
    )
    lines, agree = comparison(Results({"small": found()}), Results({"small": slow}))
    assert agree
    assert "2 of 2 ratios agree within 30%." in lines
    assert "small: load 0.5 to 8.0, and 0.5 to 8.0" in lines


def test_a_ratio_that_is_more_apart_stands_first_and_fails_it() -> None:
    other = with_ours((1, 2.0e-6), (1, 4.0e-6), (1, 6.0e-6))  # twice the floor's, not 1.5 times
    lines, agree = comparison(Results({"small": found()}), Results({"small": other}))
    assert not agree
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        "small", "one call", OURS, "1.5", "2", "33%",
    ]  # fmt: skip
    assert "0 of 2 ratios agree within 30%." in lines


def test_runs_with_nothing_in_common_do_not_agree() -> None:
    assert comparison(Results({"small": found()}), Results({"other": found()})) == (
        ["the two have no ratio in common"],
        False,
    )
