"""Where Claude Code keeps the transcript of a thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.adapters.claude.transcript import transcript
from custodes.adapters.port import Transcript

THREAD = "0f3c2a51-6d0e-4b7a-9a53-8a1a2f0c9d11"
FILE = f"projects/-srv-app/{THREAD}.jsonl"


def test_a_thread_is_found_by_its_id_below_the_home_in_force(tmp_path: Path) -> None:
    for home, environ in (
        (tmp_path / "own", {"CLAUDE_CONFIG_DIR": str(tmp_path / "own"), "HOME": str(tmp_path)}),
        (tmp_path / ".claude", {"HOME": str(tmp_path)}),
    ):
        file = home / FILE
        file.parent.mkdir(parents=True)
        file.touch()
        assert transcript(THREAD, environ).place == str(file)


def test_a_thread_that_is_gone_can_still_be_asked_for(tmp_path: Path) -> None:
    found = transcript(THREAD, {"HOME": str(tmp_path)})
    assert found.place is None
    assert found.command[-1] == THREAD


@pytest.mark.parametrize("value", ["", "*", "../../etc/passwd", "--help", THREAD + "\n"])
def test_what_is_no_id_names_nothing(value: str, tmp_path: Path) -> None:
    assert transcript(value, {"HOME": str(tmp_path)}) == Transcript()
