"""Input that means harm, and how much of it is tried.

Each strategy starts from something real (a capture, a file as users write it) and spoils it: cut anywhere,
a piece doubled, a field of another type, a number nobody can hold. What is drawn at random alone rarely gets
past the first line of a parser.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

VARIABLE = "CUSTODES_FUZZ"
"""How many times as many examples are tried, and then other ones each time; 1 where it is not set."""

CANARY = "sk-canary-5d1f0b7e"
"""A key that no text of ours may ever hold."""


def tried(examples: int) -> settings:
    """The budget of a property: ``examples`` in the ordinary suite, always the same ones."""
    times = int(os.environ.get(VARIABLE, "1"))
    return settings(
        max_examples=examples * times,
        derandomize=times == 1,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


WORDS = (
    "",
    " ",
    "\0",
    "\x1b[31m\x07",
    "\u202e",
    "\ufeff",
    "é" * 50,
    "😀",
    "²",
    "٣",
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "9" * 5_000,
    "x" * 5_000,
    "\n" * 2_000,
    "```json\n{}\n```",
    "../../etc/passwd",
    "{",
    "[" * 200,
    '{"error": {"code": "x", "message": []}}',
    "resets at 10:00 +99:99",
    "try again in " + "9" * 400 + " days",
    "status: 429, resets 3pm (America/..)",
    CANARY,
)
"""Texts that something stumbled over, here or elsewhere."""

_NUMBERS = (
    *(0, -1, 1, 399, 429, 599, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400),
    *(0.0, -0.0, -0.5, 1e-320, 1.5, 1e308, float("nan"), float("inf"), float("-inf")),
)

scalars: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, False]),
    st.sampled_from(_NUMBERS),
    st.sampled_from(WORDS),
    st.text(max_size=20),
)
"""One value of JSON, or of what is written as JSON."""

documents: st.SearchStrategy[Any] = st.one_of(
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(WORDS[:10]) | st.text(max_size=8), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    st.sampled_from([_deep(150), _deep(300)]),
)
"""Any value of JSON, in any place."""


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += _places(inner, (*path, number))
    return found


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _put(value[path[0]], path[1:], new)
    return copy


@st.composite
def bent(draw: st.DrawFn, whole: Any) -> Any:
    """A document that fits, with one or two of its values replaced by something else."""
    for _ in range(draw(st.integers(1, 2))):
        whole = _put(whole, draw(st.sampled_from(_places(whole))), draw(documents))
    return whole


@st.composite
def spoiled(draw: st.DrawFn, seeds: Sequence[bytes], pieces: Sequence[bytes] = ()) -> bytes:
    """The bytes of a seed with some of them lost, doubled, overwritten or put in."""
    data = draw(st.sampled_from(seeds))
    odd = st.sampled_from(pieces) if pieces else st.nothing()
    for _ in range(draw(st.integers(1, 4))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        end = min(end, begin + draw(st.sampled_from([1, 2, 8, 4_000])))
        match draw(st.sampled_from(["lose", "double", "overwrite", "put in", "end"])):
            case "lose":
                data = data[:begin] + data[end:]
            case "double":
                data = data[:end] + data[begin:]
            case "overwrite":
                data = data[:begin] + draw(st.binary(max_size=4) | odd) + data[end:]
            case "put in":
                data = data[:begin] + draw(st.binary(max_size=4) | odd) + data[begin:]
            case "end":
                data = data[:begin]
    return data


@st.composite
def bent_lines(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """Lines of JSON that a program printed, some of them bent, doubled, swapped or gone."""
    lines = draw(st.sampled_from(seeds)).split(b"\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["bend", "bend", "bend", "double", "lose", "swap"])):
            case "bend":
                try:
                    whole = json.loads(lines[at])
                except ValueError:
                    whole = None
                # As JSON that some programs write: with NaN, Infinity and halves of surrogate pairs.
                lines[at] = json.dumps(draw(bent(whole))).encode()
            case "double":
                lines.insert(at, lines[at])
            case "lose":
                del lines[at : at + 1]
                lines = lines or [b""]
            case "swap":
                lines[at], lines[0] = lines[0], lines[at]
    return b"\n".join(lines)


def every_bend(line: bytes) -> Iterator[tuple[object, bytes]]:
    """A line of JSON with each of its values replaced by each odd one, and what names the place: two events
    of one kind have the same places."""
    try:
        whole = json.loads(line)
    except ValueError:
        return
    if not isinstance(whole, dict):
        return
    kind = tuple(str(whole.get(name)) for name in ("type", "subtype", "method", "id"))
    for path in _places(whole):
        place = (kind, tuple("*" if isinstance(step, int) else step for step in path))
        odd: list[Any] = [None, True, *_NUMBERS, *WORDS, [], {}, [[]], {"a": None}, _deep(150)]
        for value in odd:
            yield (place, repr(value)[:40]), json.dumps(_put(whole, path, value)).encode()


_NOTHING: tuple[Any, ...] = (False, 0, "", [], {})


def other_kinds_of_nothing(whole: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """A document with one of its mappings, lists or texts replaced by an empty value of another kind; where.

    Nobody who reads such a value as "not stated" could tell what its writer meant.
    """
    for path in _places(whole):
        here = whole
        for step in path:
            here = here[step]
        if path and isinstance(here, dict | list | str):
            for nothing in _NOTHING:
                if type(nothing) is not type(here):
                    yield path, _put(whole, path, nothing)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, as a pipe hands it over."""
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(ends)]


def in_words(error: Exception) -> str:
    """What a refusal says, which is one line and holds no secret."""
    words = str(error)
    assert words.strip()
    assert "\n" not in words
    assert CANARY not in words
    return words
