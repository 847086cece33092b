"""Work is checked where it is made: a mistake shows at the caller's own line."""

from __future__ import annotations

from typing import Any

import pytest

from custodes.supervision.work import Work


@pytest.mark.parametrize(
    "fields",
    [
        {"role": None},
        {"prompt": None},
        {"scope": "src"},  # one text is no list of them: it would be read letter by letter
        {"scope": (3,)},
        {"mutable": "yes"},
        {"model": 5},
        {"timeout": "3"},
        {"name": None},
    ],
)
def test_a_field_of_another_type_is_named(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(TypeError, match=name):
        Work(**{"role": "reviewer", "prompt": "look", **fields})


@pytest.mark.parametrize("fields", [{"prompt": "\ud800"}, {"name": "\ud800"}, {"scope": ("\ud800",)}])
def test_a_text_that_could_be_neither_sent_nor_stored_is_named(fields: dict[str, Any]) -> None:
    (name,) = fields
    with pytest.raises(ValueError, match=f"{name}.*no Unicode"):
        Work(**{"role": "reviewer", "prompt": "look", **fields})


def test_a_complexity_nobody_knows_is_no_error() -> None:
    complexity: Any = "odd"
    assert Work(role="reviewer", prompt="look", complexity=complexity).complexity == complexity
