"""The demo, run as a person runs it."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.terminal import Frame, on_terminal, plain

COS = [sys.executable, "-m", "custodes.cli"]
RECORDING = Path(__file__).parents[2] / "docs" / "images" / "demo.svg"
RECORDED_COLUMNS = 104


def recorded() -> Frame:
    """The recording's last frame, below its command line."""
    last = RECORDING.read_text(encoding="utf-8").rpartition("<g ")[2]
    lines: defaultdict[float, str] = defaultdict(str)
    for y, words in re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>([^<]*)</text>', last):
        lines[float(y)] += html.unescape(words).replace("\xa0", " ").rstrip("\n")
    _, *tree = (line.rstrip() for _, line in sorted(lines.items()))
    return Frame(0, "\n".join(tree))


def said(frame: Frame) -> set[str]:
    """Its lines in whatever order: children and pools stand as they came up."""
    return {line.lstrip("│├└─ ") for line in frame.words}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def test_it_meets_a_limit_falls_back_and_heals_by_one_probe(temporary: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [*COS, "demo", "--format", "json"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    report = json.loads(run.stdout)
    outcomes: dict[str, dict[str, Any]] = {outcome["name"]: outcome for outcome in report["outcomes"]}
    assert {name: outcome["status"] for name, outcome in outcomes.items()} == dict.fromkeys(outcomes, "done")

    limited, covered = outcomes["risks"]["attempts"]
    assert (limited["failure"]["category"], limited["failure"]["retry_after_s"]) == ("capacity", 3)
    assert covered["failure"] is None
    assert covered["pool"] != limited["pool"]

    (probe,) = outcomes["notes"]["attempts"]
    assert (probe["pool"], probe["health_probe"], probe["failure"]) == (limited["pool"], True, None)

    (independent,) = outcomes["design"]["attempts"]
    assert independent["adapter"] == limited["adapter"]
    assert independent["pool"] != limited["pool"]

    checks = outcomes["tidy"]["evidence"]["checks"]
    assert checks
    assert all(check["passed"] for check in checks)
    totals = report["totals"]
    assert (totals["limits"], totals["fallbacks"], totals["probes"]) == (1, 1, 1)
    assert totals["input_tokens"] > 0
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "config").exists()


def test_as_plain_lines_it_tells_what_happens_and_what_to_do_next(temporary: Path, tmp_path: Path) -> None:
    run = subprocess.run([*COS, "demo"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    for told in (
        "trusted",
        "failed: capacity, retry after 3 s",
        "falling back after capacity",
        "for the pool to recover",
        "as the one probe that may heal the pool",
        "demo done: 8 done",
        "swift-1 2 answered, 1 limited",
        "2 files changed",
        "cos init",
    ):
        assert told in run.stdout
    assert "\x1b" not in run.stdout


def test_on_a_terminal_it_is_a_live_tree(temporary: Path, tmp_path: Path) -> None:
    shown = on_terminal(
        [*COS, "demo"], cwd=tmp_path, environment=os.environ, columns=RECORDED_COLUMNS, rows=50
    )
    text = plain(shown.text)
    assert shown.code == 0
    for seen in ("cooling down, ", "half-open: one probe runs", "pools", "✓ notes", "demo done: 8 done"):
        assert seen in text
    assert "\x1b[32m" in shown.text
    assert said(shown.frames[-1]) == said(recorded()), "scripts/recording.py makes the README's picture anew"
