"""The two ways of the protocol: cancellable reading, writing that outlives its reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from custodes.mcp import stdio
from custodes.mcp.stdio import Lines, Writer

pytestmark = pytest.mark.anyio


class Pipe(NamedTuple):
    reading: FileIO
    writing: FileIO


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reading, writing = os.pipe()
    with FileIO(reading) as receiver, FileIO(writing, "w") as sender:
        yield Pipe(receiver, sender)


async def test_lines_are_whole_however_they_come(pipe: Pipe) -> None:
    async def write() -> None:
        for part in (b'{"a": ', b"1}\n{}\n", "ü".encode()[:1], "ü".encode()[1:] + b"\n", b"no end"):
            pipe.writing.write(part)
            await anyio.wait_all_tasks_blocked()
        pipe.writing.close()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        assert [line async for line in Lines(pipe.reading.fileno())] == ['{"a": 1}', "{}", "ü"]


async def test_a_plain_file_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "messages"
    file.write_bytes(b"one\ntwo\n")
    with file.open("rb") as opened:
        assert [line async for line in Lines(opened.fileno())] == ["one", "two"]


async def test_waiting_for_a_silent_client_ends_with_a_cancel(pipe: Pipe) -> None:
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            async for _ in Lines(pipe.reading.fileno()):
                pytest.fail("nobody wrote")

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


async def test_a_message_without_end_ends_the_connection(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE", 10)
    pipe.writing.write(b"x" * 100)
    assert [line async for line in Lines(pipe.reading.fileno())] == []
    assert "over 10 bytes" in capsys.readouterr().err


async def test_a_client_that_reads_no_answers_is_heard_only_so_far_ahead_of_them(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_AHEAD", 3)
    answers_out, answers_in = os.pipe()
    writer = Writer(answers_in)
    heard: list[str] = []
    with FileIO(answers_out) as answers, FileIO(answers_in, "w"):

        async def hear() -> None:
            async for line in Lines(pipe.reading.fileno(), writer):
                heard.append(line)  # noqa: PERF401 - it is looked at meanwhile

        async def until_heard(count: int) -> None:
            with anyio.fail_after(20):
                while len(heard) < count:
                    await anyio.lowlevel.checkpoint()

        async def answer() -> None:
            await writer.write("x" * 1024 * 1024 + "\n")  # more than any pipe holds

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(hear)
            pipe.writing.write(b"".join(b"%d\n" % number for number in range(10)))
            await until_heard(4)
            await anyio.wait_all_tasks_blocked()
            assert heard == ["0", "1", "2", "3"]
            await anyio.to_thread.run_sync(_drained, answers, 1024 * 1024 + 1)
            await until_heard(10)
            pipe.writing.close()


def _drained(answers: FileIO, size: int) -> None:
    while size > 0:
        size -= len(answers.read(size) or b"")


async def test_what_nobody_reads_is_dropped(pipe: Pipe) -> None:
    writer = Writer(pipe.writing.fileno())
    await writer.write("one\n")
    assert pipe.reading.read(100) == b"one\n"
    pipe.reading.close()
    await writer.write("two\n")
    await writer.write("three\n")
