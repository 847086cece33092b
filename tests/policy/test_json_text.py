from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.policy.json_text import Edit, edit

KEYS = st.sampled_from(["a", "b", 'q"\\', "ü", ""])
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", '"}{', "\n\u2028é"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3)
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=3)
EDITS = st.lists(
    st.builds(
        Edit, path=st.lists(KEYS, min_size=1, max_size=3).map(tuple), value=LEAVES | st.just(msgspec.UNSET)
    ),
    max_size=4,
)


def model(document: dict[str, Any], edits: list[Edit]) -> dict[str, Any]:
    """The same edits on a decoded document."""
    document = copy.deepcopy(document)
    for change in edits:
        *parents, last = change.path
        at = document
        missing = False
        for key in parents:
            if not isinstance(at.get(key), dict):
                if change.value is msgspec.UNSET:
                    missing = True
                    break
                at[key] = {}
            at = at[key]
        if missing:
            continue
        if change.value is msgspec.UNSET:
            at.pop(last, None)
        else:
            at[last] = change.value
    return document


@given(document=DOCUMENTS, edits=EDITS, indent=st.sampled_from([None, 1, 2, 4, "\t"]), compact=st.booleans())
def test_edits_of_the_text_mean_what_they_mean_on_the_document(
    document: dict[str, Any], edits: list[Edit], indent: int | str | None, compact: bool
) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    text = " " + json.dumps(document, indent=indent, separators=separators, ensure_ascii=compact) + "\n"
    result = edit(text, edits)
    expected = model(document, edits)
    assert json.dumps(json.loads(result)) == json.dumps(expected)  # the order of keys too
    assert result.startswith(" ")
    assert result.endswith("\n")


@given(document=DOCUMENTS.filter(bool), indent=st.sampled_from([2, 4, "\t"]), key=st.sampled_from(["n", "o"]))
def test_what_is_put_in_reads_as_if_it_had_been_printed_with_the_rest(
    document: dict[str, Any], indent: int | str, key: str
) -> None:
    text = json.dumps(document, indent=indent)
    result = edit(text, [Edit(path=(key, "x", "y"), value=1)])
    assert result == json.dumps(document | {key: {"x": {"y": 1}}}, indent=indent)


@pytest.mark.parametrize(
    ("text", "path", "value", "result"),
    [
        ('{"a":1}', ("b",), 2, '{"a":1, "b":2}'),
        ('{"a":1,"b":2}', ("c",), 3, '{"a":1,"b":2,"c":3}'),
        ("{}", ("a", "b"), 1, '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"a": null}', ("a", "b"), 1, '{"a": {"b": 1}}'),
        ('{"a": 1, "b": 2}', ("a",), msgspec.UNSET, '{"b": 2}'),
        ('{"a": 1, "b": 2}', ("b",), msgspec.UNSET, '{"a": 1}'),
        ('{\n  "a": 1\n}', ("a",), msgspec.UNSET, "{}"),
        ('{"a": 1.0}', ("a",), 1, '{"a": 1}'),
    ],
)
def test_an_edit_is_made_in_the_style_of_its_neighbours(
    text: str, path: tuple[str, ...], value: object, result: str
) -> None:
    assert edit(text, [Edit(path=path, value=value)]) == result
