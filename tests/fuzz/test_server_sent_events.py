"""The stream of an OpenAI-compatible endpoint, however it is cut and spoiled: events, or one typed error."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters.foreign import decode
from custodes.adapters.openai.answer import MAX_CHARS, Answer, TooLongError
from custodes.adapters.openai.events import MAX_EVENT_BYTES, Events
from support.fuzz import bent, cut, spoiled, tried

CHUNK = {
    "id": "c1",
    "model": "m1",
    "choices": [{"index": 0, "delta": {"content": "hi", "reasoning_content": ""}, "finish_reason": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1}},
}
SEEDS = [
    b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\ndata: [DONE]\n\n',
    b": a comment\r\nevent: error\r\ndata: one\r\ndata: two\r\n\r\nid: 7\nretry: 3\ndata\n\n",
    b"event: x\n\nevent: y\ndata:no blank\n\ndata:\n\n: alone\n\n",
    'data: {"x": "é😀"}\n\n'.encode(),
]
PIECES = [
    b"\r",
    b"\n\n",
    b"\r\n\r\n",
    b"data:",
    b"event:",
    b":",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"x" * 9_000,
]


def expected(body: bytes) -> list[tuple[str, str]]:
    """What the standard's own words come to, for lines that end with LF or CRLF (WHATWG HTML, 9.2.6)."""
    found: list[tuple[str, str]] = []
    name, data = "", ""
    for raw in body.split(b"\n")[:-1]:
        line = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if line == "":
            if data != "":
                found.append((name, data[:-1]))
            name, data = "", ""
            continue
        if line.startswith(":"):
            continue
        field, colon, value = line.partition(":")
        value = value[1:] if colon and value.startswith(" ") else value
        if field == "event":
            name = value.strip()
        elif field == "data":
            data += value + "\n"
    return found


def fed(pieces: Iterable[bytes]) -> list[tuple[str, str]]:
    events = Events()
    return [each for piece in pieces for each in events.feed(piece)]


@given(spoiled(SEEDS, PIECES) | st.sampled_from(SEEDS), st.lists(st.integers(0, 1 << 14), max_size=8))
@tried(150)
def test_the_events_are_those_of_the_whole_however_it_is_cut(body: bytes, places: list[int]) -> None:
    assert fed(cut(body, places)) == expected(body)


def test_an_endless_line_in_single_bytes_ends_at_the_bound_and_costs_no_more_than_its_bytes() -> None:
    """With a cost that grew with the square, this one test would take minutes."""
    events = Events()
    for _ in range(MAX_EVENT_BYTES):
        assert events.feed(b"x") == []
    with pytest.raises(TooLongError):
        events.feed(b"x")


@pytest.mark.parametrize("line", [b"data: x\n", b"data\n", b": note\n", b"data: " + b"x" * 70_000 + b"\n"])
def test_an_event_without_end_ends_at_the_bound(line: bytes) -> None:
    with pytest.raises(TooLongError):
        fed(repeat(line, 2 * MAX_EVENT_BYTES // len(line)))


@pytest.mark.parametrize("pieces", [1, 7])
def test_an_event_over_the_bound_is_refused_in_one_piece_too(pieces: int) -> None:
    body = b"data: " + b"x" * MAX_EVENT_BYTES + b"\n\n"
    with pytest.raises(TooLongError):
        fed(cut(body, range(0, len(body), -(-len(body) // pieces))))


@given(st.lists(bent(CHUNK), max_size=4))
@tried(100)
def test_whatever_an_event_holds_is_taken_or_left(chunks: list[object]) -> None:
    answer = Answer()
    for chunk in chunks:
        try:
            assert answer.take(decode(json.dumps(chunk))) >= 0
        except TooLongError:
            return
    assert len(answer.text) <= MAX_CHARS
    assert answer.model is None or answer.model.isprintable()
