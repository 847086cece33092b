"""One native program, from its start to the proof that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from custodes.adapters.process import (
    ArgumentsTooLong,
    KeeperError,
    ProcessResult,
    ProgramError,
    ProgramInput,
    ProgramMissing,
    ProgramNotExecutable,
    WorkingFolderError,
    base_environment,
    run_program,
)
from support.processes import HARD_TREE, RUN, marked, new_mark

pytestmark = pytest.mark.anyio
LONG_S = 60.0


async def run(*argv: str, mark: str = "", **options: Any) -> ProcessResult:
    environment: Mapping[str, str] = base_environment({RUN: mark} if mark else {})
    return await run_program(
        argv, **{"cwd": "/", "environment": environment, "timeout_s": LONG_S, "grace_s": 0.2, **options}
    )


async def shell(script: str, **options: Any) -> ProcessResult:
    return await run("sh", "-c", script, **options)


async def test_it_tells_the_exit_status_and_both_streams() -> None:
    result = await shell("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert (result.timed_out, result.stopped, result.truncated, result.survivors) == (False, False, False, ())


async def test_a_death_by_signal_is_a_negative_status() -> None:
    assert (await shell("kill -9 $$")).exit_code == -9


async def test_a_program_that_prints_nothing_and_exits_at_once_is_all_right() -> None:
    result = await run("true", stdin=b"x" * 200_000)
    assert (result.exit_code, result.stdout) == (0, b"")


async def test_input_reaches_the_program_whole_and_ends() -> None:
    result = await run("wc", "-c", stdin=b"x" * 1_000_000)
    assert int(result.stdout) == 1_000_000


async def test_a_program_that_reads_no_input_is_not_held_up_by_it() -> None:
    result = await shell("sleep 0.2; echo done", stdin=b"x" * 200_000)
    assert (result.exit_code, result.stdout) == (0, b"done\n")


async def test_a_program_is_spoken_with_while_it_runs() -> None:
    said = ProgramInput(b"one\n")

    def answer(line: bytes) -> None:
        said.write(b"two\n") if line == b"one" else said.close()

    result = await run("cat", stdin=said, on_line=answer)
    assert (result.exit_code, result.stopped, result.stdout) == (0, False, b"one\ntwo\n")


async def test_what_is_written_to_closed_input_goes_nowhere() -> None:
    said = ProgramInput(b"x", closed=True)
    said.write(b"y")
    assert (await run("cat", stdin=said)).stdout == b"x"


async def test_a_program_that_must_end_is_asked_first_and_may_end_by_itself() -> None:
    said = ProgramInput(b"go\n")
    script = "read a; echo up; read b; echo got $b; exit 7"
    result = await shell(
        script, stdin=said, on_line=lambda line: line == b"up", on_end=lambda: said.write(b"bye\n")
    )
    assert (result.exit_code, result.stopped, result.stdout) == (7, True, b"up\ngot bye\n")


async def test_a_cancelled_program_is_asked_first_too() -> None:
    said, heard, mark = ProgramInput(), anyio.Event(), new_mark()
    lines: list[bytes] = []
    script = "echo up; read a; echo $a; exit 0"

    def told(line: bytes) -> None:
        lines.append(line)
        heard.set()

    async with anyio.create_task_group() as group:

        async def ask() -> None:
            await shell(script, mark=mark, stdin=said, on_line=told, on_end=lambda: said.write(b"bye\n"))

        group.start_soon(ask)
        await heard.wait()
        group.cancel_scope.cancel()
    assert lines == [b"up", b"bye"]
    assert marked(mark) == []


async def test_a_program_that_does_not_listen_is_ended_all_the_same() -> None:
    mark = new_mark()
    said = ProgramInput()
    result = await shell(HARD_TREE, mark=mark, stdin=said, on_line=lambda _: True, on_end=said.close)
    assert result.survivors == ()
    assert marked(mark) == []


async def test_a_program_that_ended_by_itself_is_not_asked() -> None:
    asked: list[bool] = []
    await shell("exit 0", on_end=lambda: asked.append(True))
    assert asked == []


async def test_what_runs_beside_it_ends_with_it() -> None:
    seen: list[str] = []
    said = ProgramInput()

    async def beside() -> None:
        seen.append("began")
        said.write(b"go\n")
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("ended")

    result = await shell("read a; echo $a", stdin=said, beside=beside)
    assert (result.exit_code, result.stdout) == (0, b"go\n")
    assert seen == ["began", "ended"]


async def test_what_runs_beside_it_ends_where_the_program_must_too() -> None:
    seen: list[str] = []

    async def beside() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("beside")

    await shell("sleep 300", timeout_s=0.5, beside=beside, on_end=lambda: seen.append("on_end"))
    assert sorted(seen) == ["beside", "on_end"]


async def test_what_is_raised_beside_it_is_raised_after_the_end() -> None:
    mark = new_mark()

    async def beside() -> None:
        raise ZeroDivisionError("beside")

    with pytest.raises(ZeroDivisionError, match="beside"):
        await shell("sleep 300", mark=mark, beside=beside)
    assert marked(mark) == []


async def test_a_timeout_ends_the_program_and_says_so() -> None:
    mark = new_mark()
    result = await shell("sleep 300", mark=mark, timeout_s=0.5)
    assert (result.timed_out, result.stopped, result.survivors) == (True, False, ())
    assert marked(mark) == []


async def test_an_early_end_asks_first_and_what_is_said_then_is_kept() -> None:
    result = await shell(
        "trap 'echo bye; exit 7' TERM; echo up; sleep 300 & wait", on_line=lambda _: True, grace_s=20
    )
    assert (result.stopped, result.exit_code, result.stdout) == (True, 7, b"up\nbye\n")


async def test_a_tree_that_ignores_term_is_killed_after_the_grace() -> None:
    mark = new_mark()
    result = await shell(HARD_TREE, mark=mark, on_line=lambda line: line == b"up")
    assert (result.stopped, result.exit_code, result.survivors) == (True, -9, ())
    assert marked(mark) == []


async def test_a_tree_that_ignores_term_and_holds_the_pipe_is_gone_after_a_cancel() -> None:
    """Acceptance F4, the keeper's part."""
    mark = new_mark()
    seen = []
    with anyio.CancelScope() as scope:

        def up(line: bytes) -> None:
            seen.extend(marked(mark))
            scope.cancel()

        await shell(HARD_TREE, mark=mark, on_line=up)
    assert scope.cancelled_caught
    assert len(seen) >= 5
    assert marked(mark) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_loops_own_cancellation_leaves_nothing_either() -> None:
    mark = new_mark()
    up = asyncio.Event()
    task = asyncio.create_task(shell(HARD_TREE, mark=mark, on_line=lambda _: up.set()))
    await up.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert marked(mark) == []


async def test_cancelled_before_it_began_nothing_runs(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shell(f"touch {tmp_path}/ran")
    assert scope.cancelled_caught
    assert not (tmp_path / "ran").exists()


async def test_a_background_child_that_holds_the_pipe_does_not_hold_the_result() -> None:
    mark = new_mark()
    result = await shell("setsid sleep 300 & echo done", mark=mark)
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert marked(mark) == []


async def test_a_program_may_close_its_output_and_live_on() -> None:
    assert (await shell("exec >&- 2>&-; sleep 0.2; exit 4")).exit_code == 4


@pytest.mark.parametrize(("stream", "callback"), [("1", "on_line"), ("2", "on_error_line")])
async def test_a_line_callback_may_end_the_program(stream: str, callback: str) -> None:
    mark = new_mark()
    result = await shell(
        f"echo one >&{stream}; echo two >&{stream}; sleep 300",
        mark=mark,
        **{callback: lambda line: line == b"two"},
    )
    assert result.stopped
    assert not result.timed_out
    assert marked(mark) == []


@pytest.mark.parametrize("callback", ["on_line", "on_error_line", "on_start"])
async def test_what_a_callback_raises_is_raised_after_the_end(callback: str) -> None:
    mark = new_mark()

    def fail(_: object) -> None:
        raise ZeroDivisionError(callback)

    with pytest.raises(ZeroDivisionError, match=callback):
        await shell("echo x; echo x >&2; sleep 300", mark=mark, **{callback: fail})
    assert marked(mark) == []


async def test_the_process_id_is_told_when_it_runs() -> None:
    pids: list[int] = []
    result = await shell("echo $$", on_start=pids.append)
    assert pids == [int(result.stdout)]


@pytest.mark.parametrize("place", [0, 4_000, 7_999])
async def test_the_line_that_matters_is_seen_wherever_it_stands(place: int) -> None:
    """Acceptance F14: 200 KB, the limit line first, in the middle, last."""
    one = f"[ $i = {place} ] && echo limit || echo 012345678901234567890123"
    script = f"i=0; while [ $i -lt 8000 ]; do {one}; i=$((i+1)); done"
    seen: list[bytes] = []
    result = await shell(script, on_line=seen.append, keep_bytes=1000)
    assert seen.index(b"limit") == place
    assert len(seen) == 8000
    assert result.truncated
    assert len(result.stdout) < 2100


@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.full)])
@pytest.mark.parametrize("source", ["/dev/zero", "lines"])
async def test_memory_is_bounded_whatever_the_output(source: str, megabytes: int) -> None:
    """Acceptance F14: without a newline, and in lines of 200 KB."""
    stream = "cat /dev/zero" if source == "/dev/zero" else f"yes {'x' * 100_000}"
    lengths = set()
    tracemalloc.start()
    try:
        result = await shell(
            f"{stream} | head -c {megabytes << 20}",
            on_line=lambda line: lengths.add(len(line)),
            keep_bytes=10_000,
            max_line_bytes=150_000,
            timeout_s=10 * LONG_S,  # a gigabyte, with each allocation traced, on whatever machine
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.exit_code == 0
    assert max(lengths) == (150_000 if source == "/dev/zero" else 100_000)
    assert len(result.stdout) < 21_000
    assert peak < 4 << 20


async def test_it_has_a_session_of_its_own_and_no_terminal() -> None:
    code = (
        "import os\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print(os.getsid(0) == os.getpid())"
    )
    assert (await run(sys.executable, "-c", code)).stdout == b"True\n"


async def test_its_start_is_told_before_its_first_line(tmp_path: Path) -> None:
    """However late the host looks: here it is busy until the program has printed, so all is there at once."""
    for number in range(6):
        told: list[str] = []
        printed = tmp_path / str(number)

        async def busy(until: Path = printed) -> None:
            look_until_there(until)

        await shell(
            f"echo line; touch {printed}",
            on_start=lambda _, told=told: told.append("start"),
            on_line=lambda line, told=told: told.append(line.decode()),
            beside=busy,
        )
        assert told == ["start", "line"]


def look_until_there(file: Path) -> None:
    while not file.exists():
        time.sleep(0.005)


async def test_a_question_gets_the_end_of_input() -> None:
    assert (await shell("read answer; echo $?")).stdout == b"1\n"


async def test_no_file_of_ours_reaches_the_program(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = await run(sys.executable, "-c", "import os; print(os.listdir('/proc/self/fd'))")
    assert sorted(eval(result.stdout)) == ["0", "1", "2", "3"]  # noqa: S307 - 3 is the listing's own


async def test_it_gets_exactly_its_environment_and_folder(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "NAME": "a=b\nc", "ODD": "\udcff"}
    result = await run("env", "-0", environment=environment, cwd=str(tmp_path))
    assert {os.fsdecode(entry) for entry in result.stdout.split(b"\0") if entry} == {
        f"{name}={value}" for name, value in environment.items()
    }
    assert (await run("pwd", cwd=str(tmp_path))).stdout.strip() == os.fsencode(os.path.realpath(tmp_path))


async def test_signals_are_as_a_program_expects_them() -> None:
    """As a bare child has them: Python ignores two of its own, and the keeper blocks and handles others. What
    was ignored before Python started is for the person who did so to say; where posix_spawn started it
    (subprocess does from 3.13 on) that is signal 32, glibc's own, which no program may set."""
    command = ["cat", "/proc/self/status"]
    ignored, blocked = signals_of((await run(*command)).stdout)
    ignored_bare, blocked_bare = signals_of((await anyio.run_process(command)).stdout)
    assert (ignored - ignored_bare, blocked - blocked_bare) == (set(), set())


def signals_of(status: bytes) -> tuple[set[int], set[int]]:
    """The numbers of those that are ignored and blocked, by a ``/proc/PID/status``."""
    masks = dict(re.findall(rb"^(SigIgn|SigBlk):\t([0-9a-f]+)$", status, re.MULTILINE))
    ignored, blocked = (
        {number + 1 for number in range(64) if int(masks[name], 16) >> number & 1}
        for name in (b"SigIgn", b"SigBlk")
    )
    return ignored, blocked


async def test_a_base_environment_carries_no_more_than_what_is_needed_or_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_SECRET_KEY", "1")
    monkeypatch.setenv("NAMED", "2")
    environment = base_environment({"EXTRA": "3"}, keep=["NAMED", "NOT_SET"])
    assert environment["PATH"] == os.environ["PATH"]
    assert (environment["NAMED"], environment["EXTRA"]) == ("2", "3")
    assert not {"SOME_SECRET_KEY", "NOT_SET"} & set(environment)


async def test_a_missing_program_is_named_with_where_it_was_looked_for() -> None:
    with pytest.raises(ProgramMissing, match=r"'no-such-program' on PATH \(/nowhere\)"):
        await run("no-such-program", environment={"PATH": "/nowhere"})
    with pytest.raises(ProgramMissing, match="/nowhere/program"):
        await run("/nowhere/program")
    with pytest.raises(ProgramMissing, match="empty"):
        await run()


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("#!/bin/sh\n", 0o644, "may not be executed"),
        ("#!/no/such/interpreter\n", 0o755, "interpreter"),
        ("\0\1\2 garbage", 0o755, "no program of this system"),
    ],
)
async def test_a_file_that_cannot_be_run_says_why(
    tmp_path: Path, content: str, mode: int, words: str
) -> None:
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(mode)
    with pytest.raises(ProgramNotExecutable, match=words):
        await run(str(program))


async def test_a_folder_named_as_program_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ProgramNotExecutable, match="is a folder"):
        await run(str(tmp_path))


async def test_a_wrong_working_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkingFolderError, match="gone', does not exist"):
        await run("true", cwd=str(tmp_path / "gone"))
    (tmp_path / "file").touch()
    with pytest.raises(WorkingFolderError, match="file', is no folder"):
        await run("true", cwd=str(tmp_path / "file"))


async def test_too_long_an_argument_points_to_standard_input() -> None:
    with pytest.raises(ArgumentsTooLong, match="standard input"):
        await run("true", "x" * 5_000_000)


async def test_a_nul_byte_is_refused_in_words() -> None:
    with pytest.raises(ProgramError, match="NUL"):
        await run("true", "a\0b")


async def test_a_program_that_kills_its_keeper_is_ended_and_its_status_unknown() -> None:
    mark = new_mark()
    with pytest.raises(KeeperError, match="was lost") as raised:
        await shell("setsid sleep 300 & kill -9 $PPID; sleep 300", mark=mark)
    assert raised.value.survivors == ()
    assert marked(mark) == []


async def test_a_program_that_stops_its_keeper_is_still_ended_with_proof() -> None:
    mark = new_mark()
    result = await shell("kill -STOP $PPID; echo up; sleep 300", mark=mark, on_line=lambda _: True)
    assert (result.stopped, result.exit_code, result.survivors) == (True, -15, ())
    assert marked(mark) == []


async def test_processes_that_fork_and_leave_without_end_are_caught() -> None:
    mark = new_mark()
    code = "import os, time\nwhile True:\n if os.fork(): os._exit(0)\n os.setsid(); time.sleep(0.001)"
    result = await shell(
        f'for i in 1 2 3 4; do {sys.executable} -S -c "$CODE" & done; sleep 1; exit 5',
        environment=base_environment({"CODE": code, RUN: mark}),
    )
    assert (result.exit_code, result.survivors) == (5, ())
    assert marked(mark) == []


@pytest.mark.parametrize("count", [8, pytest.param(100, marks=pytest.mark.full)])
async def test_many_hard_trees_at_once_are_proven_gone(count: int) -> None:
    mark = new_mark()
    results: list[ProcessResult] = []

    async def one() -> None:
        results.append(await shell(HARD_TREE, mark=mark, on_line=lambda line: line == b"up", grace_s=0.5))

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(one)
    assert [(result.stopped, result.survivors) for result in results] == [(True, ())] * count
    assert marked(mark) == []
