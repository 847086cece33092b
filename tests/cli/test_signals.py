"""A run that is ended from outside: every process it started is gone, and it says so."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.program import running

COS = [sys.executable, "-m", "custodes.cli"]
PLAN = """\
name: slow
steps:
  - {id: one, role: reviewer, prompt: Look., model: slow}
  - {id: two, role: reviewer, prompt: Look., model: slow}
  - {id: after, role: reviewer, prompt: Look., model: look, needs: [one]}
"""
PATIENCE_S = 120


def pids_of(pipe: int) -> list[int]:
    """The pids of both children and of the tool each has started, once all four are there."""
    told = b""
    while told.count(b"\n") < 2:
        assert select.select([pipe], [], [], PATIENCE_S)[0], "the children did not start"
        told += os.read(pipe, 4096)
    return [int(pid) for pid in told.split()]


@pytest.fixture
def slow(programs: Path) -> Path:
    (programs / "plan.yaml").write_text(PLAN)
    return programs


@pytest.fixture
def pipe(slow: Path) -> Iterator[int]:
    """Where the children tell their pids. Open at both ends, so that neither side waits for the other."""
    os.mkfifo(slow / "pids")
    descriptor = os.open(slow / "pids", os.O_RDWR)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda n: str(n),
)
def test_a_signal_ends_every_child_with_its_tools_and_the_tree_says_cancelled(
    slow: Path, pipe: int, number: signal.Signals, code: int
) -> None:
    with running(
        [*COS, "run", "plan.yaml"], cwd=slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        pids = pids_of(pipe)
        program.send_signal(number)
        out, err = program.communicate(timeout=PATIENCE_S)
    assert [pid for pid in pids if psutil.pid_exists(pid)] == []
    assert program.returncode == code
    assert "one: cancelled" in out
    assert "two: cancelled" in out
    assert "slow cancelled:" in out
    assert err == ""


def test_with_json_a_cancelled_run_is_still_one_document(slow: Path, pipe: int) -> None:
    with running(
        [*COS, "run", "plan.yaml", "--format", "json"],
        cwd=slow,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        pids_of(pipe)
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=PATIENCE_S)
    report = json.loads(out)
    assert report["status"] == "cancelled"
    assert {o["name"]: o["status"] for o in report["outcomes"]}.items() >= {
        "one": "cancelled",
        "two": "cancelled",
    }.items()
    assert (program.returncode, err) == (130, "")
