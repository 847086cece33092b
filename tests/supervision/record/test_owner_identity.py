"""Who owns a row, and when that process is proven dead."""

from __future__ import annotations

import os
import subprocess
import sys

from msgspec.structs import replace

from custodes.supervision.record.owner_identity import Owner, proven_dead, start_of, this_process
from support.program import running


def test_this_process_lives_and_is_one_and_the_same() -> None:
    assert this_process() == this_process()
    assert this_process().pid == os.getpid()
    assert not proven_dead(this_process())


def test_a_process_that_ended_is_proven_dead_also_before_it_is_reaped() -> None:
    with running([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = start_of(child.pid)
        assert started is not None
        owner = replace(this_process(), pid=child.pid, started=started)
        assert not proven_dead(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and not reaped
        assert proven_dead(owner)
    assert proven_dead(owner)


def test_a_recycled_pid_is_another_process() -> None:
    assert proven_dead(replace(this_process(), started=this_process().started + 1))


def test_a_process_of_another_boot_is_dead() -> None:
    assert proven_dead(replace(this_process(), boot="an earlier one"))


def test_a_process_in_another_pid_namespace_is_never_proven_dead() -> None:
    assert not proven_dead(Owner(2**22 - 1, 1.0, this_process().boot, "pid:[1]"))


def test_a_forked_child_is_a_process_of_its_own() -> None:
    parent = this_process()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, b"other" if this_process() != parent else b"same")
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    assert os.read(read, 10) == b"other"
    os.close(read)
