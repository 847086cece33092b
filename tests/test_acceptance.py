"""``acceptance.txt`` has every acceptance case by its id, with a test that shows it; more bear on most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

NUMBERS = {"B": 33, "R": 22, "F": 21, "T": 10, "O": 14}
"""How many cases each letter has."""


def entries() -> list[tuple[str, str]]:
    lines = (TESTS / "acceptance.txt").read_text().splitlines()
    return [(case, test) for case, test in map(str.split, lines)]


@pytest.mark.parametrize(("case", "test"), entries())
def test_a_case_has_a_test_that_is_there(case: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.MULTILINE)


def test_every_case_is_in_the_index() -> None:
    wanted = [f"{letter}{number}" for letter, most in NUMBERS.items() for number in range(1, most + 1)]
    assert list(dict.fromkeys(case for case, _ in entries())) == wanted
