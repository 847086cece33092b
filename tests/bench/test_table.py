"""Tables that a terminal shows aligned and that are Markdown."""

from __future__ import annotations

import pytest

from bench.suite.table import figures, table, targets
from bench.suite.words import amount, times
from support.found import found


@pytest.mark.parametrize(
    ("value", "key", "words"),
    [
        (0.0, "seconds", "0 ns"),
        (1.234e-9, "cpu", "1.23 ns"),
        (0.0123, "seconds", "12.3 ms"),
        (151.2, "leaving_s", "151 s"),
        (17_800.0, "bytes", "17.8 kB"),
        (12_345.6, "changes", "12,346"),
        (3.0, "through", "3"),
    ],
)
def test_a_figure_has_three_digits_and_the_unit_that_fits(value: float, key: str, words: str) -> None:
    assert amount(value, key) == words


def test_a_ratio_far_below_one_is_told_as_a_part() -> None:
    assert (times(1 / 80), times(0.5), times(1.234)) == ("1/80", "0.5", "1.23")


def test_every_line_of_a_table_is_as_wide_as_the_next() -> None:
    lines = list(table(["", "x"], [["a", "1"], ["longer", "1,000"]], frozenset({1})))
    assert lines == [
        "|        |     x |",
        "| ------ | ----: |",
        "| a      |     1 |",
        "| longer | 1,000 |",
    ]


def test_a_bench_is_told_with_who_could_not_and_each_target() -> None:
    text = "\n".join(figures(found()))
    assert "- a peer: cannot be installed: no disk" in text
    row = next(line for line in text.splitlines() if "one call" in line and "by hand" in line)
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "one call", "by hand", "4 µs", "2 µs to 9 µs", "2 µs", "", "", "",
    ]  # fmt: skip
    row = next(line for line in text.splitlines() if "pass" in line)
    assert [cell.strip() for cell in row.split("|")[3:-1]] == [
        "5 µs", "3 µs to 9 µs", "3 µs", "1.5 x by hand", "≤ 2 x by hand", "pass",
    ]  # fmt: skip
    assert "2 x that of 1" in text


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        ("by hand", "missed; the floor, by hand, takes 2 µs"),
        ("the disk", "missed; the disk"),
        ("", "missed"),
    ],
)
def test_a_target_that_is_missed_names_the_floor_that_stops_it(floor: str, said: str) -> None:
    *_, row = targets({"small": found(most=1.2, floor=floor)})
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "small: one call, custodes", "≤ 1.2 x by hand", "1.5 x", "1.13 x", said,
    ]  # fmt: skip
