"""Bounded output, whatever way it is cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters.process_output import HeadAndTail, Lines, Output

PIECES = st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", b"a\r\n", b"\n\nb"]), max_size=30)


@given(PIECES)
def test_lines_are_those_of_the_whole(pieces: list[bytes]) -> None:
    lines = Lines(10_000)
    seen = [line for piece in pieces for line in lines.add(piece)] + list(lines.end())
    whole = b"".join(pieces).split(b"\n")
    expected = [line.removesuffix(b"\r") for line in whole[:-1]]
    assert seen == expected + [whole[-1].removesuffix(b"\r")] * bool(whole[-1])


@given(PIECES, st.integers(1, 20))
def test_no_line_is_longer_than_its_bound(pieces: list[bytes], bound: int) -> None:
    lines = Lines(bound)
    seen = [line for piece in pieces for line in lines.add(piece)] + list(lines.end())
    whole = b"".join(pieces).split(b"\n")
    assert [line[:bound].removesuffix(b"\r") for line in whole][: len(seen)] == seen


@given(PIECES, st.integers(1, 20))
def test_what_has_not_ended_yet_is_counted_up_to_the_bound(pieces: list[bytes], bound: int) -> None:
    lines = Lines(bound)
    for piece in pieces:
        list(lines.add(piece))
    assert lines.unended == min(bound, len(b"".join(pieces).rpartition(b"\n")[2]))


@given(PIECES, st.integers(1, 50))
def test_head_and_tail_are_those_of_the_whole(pieces: list[bytes], bound: int) -> None:
    kept = HeadAndTail(bound)
    for piece in pieces:
        kept.add(piece)
    whole = b"".join(pieces)
    assert kept.truncated is (len(whole) > 2 * bound)
    if kept.truncated:
        left_out = b"\n[... %d bytes left out ...]\n" % (len(whole) - 2 * bound)
        assert kept.value() == whole[:bound] + left_out + whole[-bound:]
    else:
        assert kept.value() == whole


def test_a_callback_that_raised_is_not_called_again() -> None:
    calls = []

    def fail(line: bytes) -> None:
        calls.append(line)
        raise ValueError(line)

    output = Output(100, 100, fail)
    output.add(b"a\nb\n")
    output.end()
    assert calls == [b"a"]
    assert isinstance(output.error, ValueError)
    assert output.kept.value() == b"a\nb\n"
