from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from custodes.cli.options import folder_at, project_at


def test_a_named_folder_is_meant_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    (inner.parent / ".coding-os").mkdir()
    monkeypatch.chdir(inner)
    assert project_at(inner) == folder_at(Path()) == inner.resolve()
    assert project_at(Path()) == inner.parent.resolve()


def test_nothing_but_our_own_two_files_loads_before_ctrl_c_is_a_line() -> None:
    loaded = (
        "import os, sys; before = set(sys.modules); import custodes.cli; print(*set(sys.modules) - before)"
    )
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) == {"custodes", "custodes.cli"}


def test_ctrl_c_while_modules_still_load_is_a_line_and_no_traceback() -> None:
    interrupted = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'custodes.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from custodes.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", interrupted], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (130, "cos: interrupted\n")
