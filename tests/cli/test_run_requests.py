"""`cos runs cancel|asks|answer`: what is asked of a host that runs in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from custodes.supervision.nesting.nested_work import RUN
from support.cos import Cos
from support.writers import eventually

TESTS = Path(__file__).parents[1]


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def at_work(project: Path) -> Iterator[tuple[subprocess.Popen[str], tuple[int, ...]]]:
    """A `cos dispatch` whose child sleeps, and the pids of that and of its stubborn tool."""
    os.mkfifo(project / "pids")
    words = (
        "-m",
        "custodes.cli",
        "dispatch",
        "--role",
        "reviewer",
        "--on",
        "command",
        "--model",
        "slow",
        "x",
    )
    with running(*words) as process:
        yield process, tuple(map(int, (project / "pids").read_text().split()))


def test_what_a_child_asks_leave_for_is_listed_and_answered(
    cos: Cos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no child asks leave" in cos("runs", "asks").out
    with running("-m", "support.asking_host", str(project)) as host:
        eventually(
            "it asks",
            lambda: (
                (project / ".coding-os" / "custodes.db").exists()
                and bool(cos("runs", "asks", "--format", "json").document["asks"])
            ),
        )
        (ask,) = cos("runs", "asks", "--format", "json").document["asks"]
        assert (ask["tool"], ask["detail"], ask["name"], ask["depth"]) == ("shell", "rm -r build", "asker", 1)
        line = cos("runs", "asks").out
        for word in (ask["id"], "asker", "shell: rm -r build", "denied in"):
            assert word in line
        with monkeypatch.context() as child:
            child.setenv(RUN, ask["run_id"])
            refused = cos("runs", "answer", ask["id"], "allow")
        assert (refused.code, "answered at the root" in refused.err) == (1, True)
        answer = cos("runs", "answer", ask["id"], "allow")
        assert (answer.code, answer.out) == (0, f"{ask['id']}: allow\n")
        again = cos("runs", "answer", ask["id"], "deny")
        assert (again.code, "was answered before: allow, by cli" in again.out) == (1, True)
        out, _ = host.communicate(timeout=60)
        assert out.strip() == "allow"
    assert "no child asks leave" in cos("runs", "asks").out


def test_an_ask_that_is_none_is_said_with_where_they_are(cos: Cos, project: Path) -> None:
    answer = cos("runs", "answer", "nothing", "allow")
    assert (answer.code, "`cos runs asks` shows" in answer.err) == (1, True)
    error = cos("runs", "answer", "nothing", "deny", "--format", "json").document["error"]
    assert error["kind"] == "request"


def test_a_run_of_another_process_is_cancelled_with_proof_and_again_without_harm(
    cos: Cos, programs: Path
) -> None:
    with at_work(programs) as (process, pids):
        (conversation,) = cos("runs", "list", "--format", "json").document["conversations"]
        (run,) = conversation["runs"]
        report = cos("runs", "cancel", run["run_id"], "--format", "json")
        assert (report.code, report.document["unanswered"]) == (0, [])
        assert [each["status"] for each in report.document["runs"]] == ["cancelled"]
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert process.wait(timeout=60) != 0
        again = cos("runs", "cancel", run["run_id"])
        assert (again.code, "cancelled" in again.out) == (0, True)
        whole = cos("runs", "cancel", conversation["conversation"])
        assert (whole.code, "runs any more" in whole.out) == (0, True)


def test_a_run_whose_owner_was_killed_is_ended_and_unknown_or_lost(cos: Cos, programs: Path) -> None:
    with at_work(programs) as (process, _pids):
        process.send_signal(signal.SIGKILL)
        process.wait()
        (conversation,) = cos("runs", "list", "--format", "json").document["conversations"]
        (run,) = conversation["runs"]
        assert run["abandoned"]
        report = cos("runs", "cancel", run["run_id"], "--format", "json")
        assert report.code == 0
        assert [(each["status"], each["abandoned"]) for each in report.document["runs"]] == [
            ("unknown", False)
        ]


def test_what_is_on_no_record_cannot_be_cancelled(cos: Cos, project: Path) -> None:
    answer = cos("runs", "cancel", "nothing")
    assert (answer.code, "`cos runs list` shows" in answer.err) == (1, True)
