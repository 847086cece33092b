"""The keeper itself: when its host dies, when it may not signal, and where nothing falls back to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

import anyio
import psutil
import pytest

from custodes.adapters import _process_table, keeper
from custodes.adapters.process import KeeperError, LeftBehind, base_environment, run_program
from support.processes import HARD_TREE, RUN, marked, new_mark, wait_until_gone
from support.program import running

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")


class Host(NamedTuple):
    process: subprocess.Popen[bytes]
    said: str


HOST = """
import ctypes, os, signal, sys, anyio
from custodes.adapters.process import base_environment, run_program

up = 0
def count(line):
    global up
    up += line == b"up"
    if up == {children}:
        {ready}

async def one():
    environment = base_environment({{"CUSTODES_RUN": sys.argv[2]}})
    await run_program(
        ["sh", "-c", sys.argv[1]], cwd="/", environment=environment, timeout_s=300, on_line=count
    )

async def main():
    async with anyio.create_task_group() as group:
        for _ in range({children}):
            group.start_soon(one)

anyio.run(main, backend=sys.argv[3])
"""


def start_host(mark: str, backend: str, *, children: int, ready: str = "print('up', flush=True)") -> Host:
    """A host in a process of its own, and the line it says once all its children run."""
    code = HOST.format(children=children, ready=ready)
    host = subprocess.Popen([sys.executable, "-c", code, HARD_TREE, mark, backend], stdout=subprocess.PIPE)
    assert host.stdout is not None
    return Host(host, host.stdout.readline().decode().strip())


def test_kill_9_of_a_host_with_eight_children_leaves_nothing(anyio_backend: str) -> None:
    """Acceptance F5, the keeper's part."""
    mark = new_mark()
    host = start_host(mark, anyio_backend, children=8)
    assert len(marked(mark)) >= 8 * 6
    host.process.kill()
    host.process.communicate()
    assert wait_until_gone(mark) == []


@pytest.mark.parametrize("fork", ["os.fork()", "ctypes.CDLL(None).fork()"])
def test_kill_9_of_a_host_that_had_forked_leaves_nothing(anyio_backend: str, fork: str) -> None:
    """The fork by the C library passes by Python's fork hooks: it really holds the keeper's socket open."""
    mark = new_mark()
    ready = f"child = {fork}; (child or signal.pause()); print(child, flush=True)"
    host = start_host(mark, anyio_backend, children=1, ready=ready)
    fork_pid = int(host.said)
    try:
        host.process.kill()
        assert wait_until_gone(mark) == []
        assert psutil.Process(fork_pid).status() != psutil.STATUS_ZOMBIE
    finally:
        os.kill(fork_pid, signal.SIGKILL)
        host.process.communicate()


def test_a_fork_of_the_host_does_not_hold_the_programs_input_open() -> None:
    code = textwrap.dedent(
        """
        import os, signal, anyio
        from custodes.adapters.process import base_environment, run_program
        forks = []
        def fork(_):
            forks.append(os.fork())
            forks[0] or signal.pause()
        async def main():
            result = await run_program(["wc", "-c"], cwd="/", environment=base_environment({}), timeout_s=60,
                                       stdin=b"x" * 1000000, on_start=fork)
            os.kill(forks[0], 9)
            print(result.exit_code, result.stdout.decode().strip())
        anyio.run(main)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"0 1000000\n"


def test_a_host_that_ignores_deaths_and_blocks_signals_hears_the_status_and_hands_none_of_it_on(
    anyio_backend: str,
) -> None:
    code = textwrap.dedent(
        """
        import signal, sys, anyio
        from custodes.adapters.process import base_environment, run_program
        PROGRAM = "grep SigBlk /proc/self/status; exit 3"
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        async def main():
            environment = base_environment({})
            result = await run_program(["sh", "-c", PROGRAM], cwd="/", environment=environment, timeout_s=60)
            print(result.exit_code, result.survivors, result.stdout.split())
        anyio.run(main, backend=sys.argv[1])
        """
    )
    done = subprocess.run([sys.executable, "-c", code, anyio_backend], capture_output=True, check=True)
    assert done.stdout == b"3 () [b'SigBlk:', b'0000000000000000']\n"


def test_a_terminated_keeper_ends_its_tree_first() -> None:
    mark = new_mark()
    host = start_host(mark, "asyncio", children=1)
    keepers = [process for process in marked(mark) if process.ppid() == host.process.pid]
    assert len(keepers) == 1
    keepers[0].terminate()
    assert wait_until_gone(mark) == []
    host.process.kill()
    host.process.communicate()


def test_a_keeper_whose_host_is_gone_before_go_runs_nothing() -> None:
    """Closing the socket in the middle of *go* ends the keeper; nothing was run."""
    ours, theirs = socket.socketpair()
    folder = str(Path(keeper.__file__).parent)
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        keeper.BOOTSTRAP,
        folder,
        str(theirs.fileno()),
        "-1",
        str(os.getpid()),
    ]
    with running(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as process:
        theirs.close()
        ours.send(b"100\n1.0\0/\0")
        ours.shutdown(socket.SHUT_WR)
        assert ours.recv(100) == b"D\n"
        ours.close()
        assert process.communicate()[0] == b""


@pytest.mark.anyio
async def test_without_a_subreaper_the_process_table_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """prctl with an option there is not fails as on a system without subreapers."""
    monkeypatch.setattr(
        keeper, "BOOTSTRAP", keeper.BOOTSTRAP.replace("_keeper.main", "_keeper.SUBREAPER = -1; _keeper.main")
    )
    mark = new_mark()
    nested = "setsid sleep 300 & echo up; sleep 300"
    result = await run_program(
        ["sh", "-c", f"trap '' TERM; setsid sh -c '{nested}' & (sleep 300 &); sleep 300"],
        cwd="/",
        environment=base_environment({RUN: mark}),
        timeout_s=60,
        grace_s=0.2,
        on_line=lambda line: line == b"up",
    )
    assert (result.stopped, result.exit_code, result.survivors) == (True, -9, ())
    assert marked(mark) == []


def test_the_table_by_ps_knows_what_the_table_by_proc_knows() -> None:
    with running(["sleep", "300"], start_new_session=True) as sleeper:
        for rows in (_process_table.by_proc(), _process_table.by_ps()):
            row = rows[sleeper.pid]
            assert (row.parent, row.group, row.name) == (os.getpid(), sleeper.pid, "sleep")
            assert row.started
        sleeper.kill()


DROP_RIGHTS = """
import os
class Weak(_keeper.Keeper):
    def start(self, fields):
        started = super().start(fields)
        os.setuid(65534)
        return started
_keeper.Keeper = Weak
"""


@needs_root
@pytest.mark.anyio
async def test_a_process_that_may_not_be_signalled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        keeper, "BOOTSTRAP", keeper.BOOTSTRAP.replace("; _keeper.main", f"\n{DROP_RIGHTS}\n_keeper.main")
    )
    pids: list[int] = []
    try:
        result = await run_program(
            ["sh", "-c", "echo up; sleep 300"],
            cwd="/",
            environment=base_environment({}),
            timeout_s=60,
            grace_s=0.1,
            on_start=pids.append,
            on_line=lambda _: True,
        )
        assert [(left.name, left.reason) for left in result.survivors] == [
            ("sh", "forbidden"),
            ("sleep", "forbidden"),
        ]
        assert result.survivors[0].pid == pids[0]
        assert result.exit_code is None
    finally:
        os.killpg(pids[0], signal.SIGKILL)


@needs_root
@pytest.mark.anyio
async def test_a_cancellation_cannot_hide_what_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        keeper, "BOOTSTRAP", keeper.BOOTSTRAP.replace("; _keeper.main", f"\n{DROP_RIGHTS}\n_keeper.main")
    )
    pids: list[int] = []
    try:
        with pytest.raises(LeftBehind, match="forbidden"), anyio.CancelScope() as scope:
            await run_program(
                ["sh", "-c", "echo up; sleep 300"],
                cwd="/",
                environment=base_environment({}),
                timeout_s=60,
                grace_s=0.1,
                on_start=pids.append,
                on_line=lambda _: scope.cancel(),
            )
    finally:
        os.killpg(pids[0], signal.SIGKILL)


@needs_root
def test_it_works_for_a_plain_user() -> None:
    """The keeper and its program as another user, who owns nothing of this installation."""
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK):
        pytest.skip("needs a Python that every user may run")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in ("_keeper.py", "_process_table.py"):
            shutil.copy(Path(keeper.__file__).parent / name, folder)
        ours, theirs = socket.socketpair()
        body = b"0.1\0/\x002\0/bin/sleep\x00300\0"
        command = [
            python,
            "-I",
            "-S",
            "-c",
            keeper.BOOTSTRAP,
            folder,
            str(theirs.fileno()),
            "-1",
            str(os.getpid()),
        ]
        with running(command, pass_fds=[theirs.fileno()], user=65534, group=65534) as process:
            theirs.close()
            ours.send(b"%d\n%s" % (len(body), body))
            said = b""
            while not said.endswith(b"P\n"):
                said += ours.recv(100)
            ours.shutdown(socket.SHUT_WR)
            while not said.endswith(b"D\n"):
                said += ours.recv(100)
            ours.close()
            process.wait()
    assert said.splitlines()[1:] == [b"P", b"X -9", b"D"]


@pytest.mark.anyio
async def test_a_frozen_host_is_told_to_name_a_python(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = sys.executable

    async def run() -> int | None:
        result = await run_program(["true"], cwd="/", environment=base_environment({}), timeout_s=60)
        return result.exit_code

    monkeypatch.delenv(keeper.PYTHON_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(KeeperError, match="set CUSTODES_PYTHON"):
        await run()
    monkeypatch.setenv(keeper.PYTHON_VARIABLE, "/no/such/python")
    with pytest.raises(KeeperError, match="'/no/such/python', which is no program"):
        await run()
    monkeypatch.setenv(keeper.PYTHON_VARIABLE, plain)
    assert await run() == 0


@pytest.mark.anyio
async def test_an_interpreter_that_cannot_keep_says_what_it_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\necho 'no module here' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv(keeper.PYTHON_VARIABLE, str(fake))
    with pytest.raises(KeeperError, match=r"before it ran anything .*no module here"):
        await run_program(["true"], cwd="/", environment=base_environment({}), timeout_s=60)
