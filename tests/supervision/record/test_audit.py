"""The log of overrides: a line is whole, or an error; what was cut spoils no other line."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from custodes.supervision.record.audit import LOG, AuditError, append_line, write_down
from custodes.supervision.record.clock import now


def test_each_line_stands_by_itself_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "made" / "log"
    append_line(file, b"one")
    append_line(file, b"two")
    assert file.read_bytes() == b"one\ntwo\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_line_after_one_that_was_cut_does_not_glue_to_it(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b'{"whole": 1}\n{"cut": ')
    append_line(file, b'{"whole": 2}')
    assert file.read_bytes() == b'{"whole": 1}\n{"cut": \n{"whole": 2}\n'


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow above ``size`` bytes, as on a full disk: a write that reaches it is cut."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_line_that_does_not_fit_is_an_error_and_the_next_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "log"
    append_line(file, b"one")
    with room_for(6), pytest.raises(OSError, match="free some space"):
        append_line(file, b"two and more")
    append_line(file, b"three")
    assert file.read_bytes() == b"one\ntw\nthree\n"


def test_a_link_is_not_followed_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(theirs)
    with pytest.raises(OSError, match="a link stands there"):
        append_line(link, b"one")
    assert theirs.read_text() == "theirs"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no ordinary file stands there"):
        append_line(pipe, b"one")


@pytest.mark.anyio
async def test_an_override_that_cannot_be_written_down_says_that_it_was_done(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir(parents=True)
    with pytest.raises(
        AuditError, match=r"health.clear 'claude' was done, but is missing .*a folder stands there"
    ):
        await write_down(tmp_path, "health.clear", "claude", "cli", now())


@pytest.mark.anyio
async def test_an_override_is_written_down_also_where_its_asker_is_cancelled(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await write_down(tmp_path, "health.clear", "claude", "cli", now())
    assert json.loads((tmp_path / LOG).read_text())["target"] == "claude"


def test_the_lines_of_many_processes_never_mix(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from custodes.supervision.record.audit import append_line
        for number in range(200):
            append_line(Path(sys.argv[1]), b'["%s", %d]' % (sys.argv[2].encode() * 400, number))
    """)
    file = tmp_path / "log"
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(file), letter], env=dict(os.environ))
        for letter in "abc"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    lines = [json.loads(line) for line in file.read_bytes().splitlines() if line]
    assert sorted(map(tuple, lines)) == [(letter * 400, number) for letter in "abc" for number in range(200)]
