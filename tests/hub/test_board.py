"""What each browser is told, however slow it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from custodes.hub.board import Board, Delta

TEXTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), max_size=6)


def shown(before: dict[str, str], board: Board, delta: Delta) -> dict[str, str]:
    """What a browser shows after a delta."""
    if delta.whole:
        return dict(board.texts)
    return {**before, **delta.changed, **delta.added}


def test_nothing_new_is_no_delta() -> None:
    board = Board()
    board.update({"a": "x"})
    mark = board.mark
    assert not board.update({"a": "x"})
    assert not board.since(mark)


def test_a_browser_that_was_away_is_told_once_of_what_changed_twice() -> None:
    board = Board()
    board.update({"a": "x", "b": "x"})
    mark = board.mark
    board.update({"a": "y", "b": "x"})
    board.update({"a": "z", "b": "x", "c": "x"})
    delta = board.since(mark)
    assert (delta.changed, delta.added, delta.whole) == ({"a": "z"}, {"c": "x"}, False)


def test_what_was_removed_or_moved_means_the_whole() -> None:
    for after in ({"b": "x"}, {"b": "x", "a": "x"}, {"c": "x", "a": "x", "b": "x"}):
        board = Board()
        board.update({"a": "x", "b": "x"})
        mark = board.mark
        board.update(after)
        assert board.since(mark).whole


def test_a_mark_of_another_board_or_of_nobodys_means_the_whole() -> None:
    board, other = Board(), Board()
    board.update({"a": "x"})
    other.update({"a": "x"})
    for mark in (
        "",
        "x",
        other.mark,
        f"{board.epoch}.",
        f"{board.epoch}.-1",
        f"{board.epoch}.99",
        f"{board.epoch}.1e3",
        f"{board.epoch}.٣",
    ):
        assert board.since(mark).whole


@given(st.lists(TEXTS, max_size=8), st.lists(st.booleans(), max_size=8))
def test_whenever_a_browser_looks_it_ends_with_what_the_board_has(
    updates: list[dict[str, str]], looks: list[bool]
) -> None:
    board = Board()
    seen: dict[str, str] = {}
    mark = board.mark
    for texts, looked in zip(updates, looks, strict=False):
        board.update(texts)
        if looked:
            delta = board.since(mark)
            seen = shown(seen, board, delta)
            mark = board.mark
            assert list(seen.items()) == list(texts.items())
