"""The command as it is typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.suite.results import Results, read, write
from support.found import found

ROOT = Path(__file__).parents[2]


def suite(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.suite", *argv]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_bench_runs_alone_and_leaves_what_the_others_found(tmp_path: Path) -> None:
    into = tmp_path / "results.json"
    write(into, Results({"small": found()}))
    before = (ROOT / "docs" / "performance.md").read_bytes()
    ran = suite("policy", "--rounds", "1", "--into", str(into))
    assert ran.returncode == 0, ran.stderr
    assert "disabled: a dispatch" in ran.stdout
    assert set(read(into).benches) == {"small", "policy"}
    assert (ROOT / "docs" / "performance.md").read_bytes() == before


def test_two_runs_are_compared(tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    write(one, Results({"small": found()}))
    write(two, Results({"small": found()}))
    ran = suite("--compare", str(one), str(two))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "2 of 2 ratios agree within 30%." in ran.stdout


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["dispach"], "there is no bench 'dispach'; there are dispatch, "),
        (["--rounds", "no"], "'no' is no number of rounds; it takes 1 or more"),
        (["--compare", "nowhere.json", "nowhere.json"], "there is no nowhere.json; scripts/bench writes one"),
    ],
)
def test_what_is_mistyped_is_said_in_a_line(argv: list[str], said: str) -> None:
    ran = suite(*argv)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
