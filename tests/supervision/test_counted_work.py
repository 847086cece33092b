"""What a dispatch may do at most, counted and not timed: a slower one is seen here, on any machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import scripted


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    # One folder on PATH, so that what readiness looks at does not hang on the machine.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)
    scripted.install(tmp_path, "one")
    scripted.configure(tmp_path, max_parallel=16)
    return tmp_path


def counted(project: Path, backend: str, size: int, *options: str) -> dict[str, int]:
    tests = Path(__file__).parents[1]
    found = subprocess.run(
        [sys.executable, "-m", "support.counted_host", str(project), backend, str(size), *options],
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    counts: dict[str, int] = json.loads(found.stdout)
    return counts


def over(counts: dict[str, int], bounds: dict[str, int]) -> dict[str, int]:
    return {what: number for what, number in counts.items() if number > bounds.get(what, 0)}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_one_dispatch_is_two_commits_and_reads_no_file(project: Path, backend: str) -> None:
    counts = counted(project, backend, 1)
    assert counts["commits"] == 2  # the admission with its row, the settle with the row's end
    assert over(counts, {"commits": 2, "statements": 8, "hops": 0, "switches": 2, "stats": 45}) == {}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_its_spans_cost_three_of_them_and_one_row_that_nobody_waits_for(project: Path, backend: str) -> None:
    counts = counted(project, backend, 1, "--spans")
    assert counts["spans"] == 3  # the child, its attempt, the call
    bounds = {"commits": 3, "statements": 13, "hops": 0, "switches": 3, "stats": 45, "spans": 3}
    assert over(counts, bounds) == {}


def test_children_side_by_side_share_their_commits(project: Path) -> None:
    """16 at a time: the settles of some and the admissions of the next are one commit."""
    counts = counted(project, "asyncio", 160)
    bounds = {"commits": 24, "statements": 122, "hops": 1, "switches": 25, "stats": 160 * 15}
    assert over(counts, bounds) == {}


@pytest.mark.parametrize(("backend", "most"), [("asyncio", 3_200), ("trio", 3_800)])
def test_one_dispatch_calls_so_many_functions(project: Path, backend: str, most: int) -> None:
    """On the host's thread, Python's and C's together."""
    assert over(counted(project, backend, 1, "--calls"), {"calls": most}) == {}


@pytest.mark.parametrize(("backend", "most"), [("asyncio", 90_000), ("trio", 170_000)])
def test_one_dispatch_allocates_so_many_bytes_and_gives_them_back(
    project: Path, backend: str, most: int
) -> None:
    """Left are 10 kB of evidence and the rows of the last commit, until the next."""
    assert over(counted(project, backend, 1, "--bytes"), {"most": most, "left": 50_000}) == {}
