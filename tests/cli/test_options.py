from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.cli.options import folder_at, project_at


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project" / "src" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("mark", [".coding-os.yaml", ".coding-os"])
def test_in_a_subfolder_the_nearest_project_above_is_meant(inner: Path, mark: str) -> None:
    project = inner.parents[1]
    (project / mark).mkdir()
    assert project_at(Path()) == project.resolve()


def test_a_named_folder_is_meant_as_it_stands(inner: Path) -> None:
    (inner.parents[1] / ".coding-os").mkdir()
    assert project_at(inner) == folder_at(Path()) == inner.resolve()


def test_without_a_project_above_it_is_the_current_folder(inner: Path) -> None:
    assert project_at(Path()) == inner.resolve()


def test_a_project_that_somebody_else_put_above_is_not_followed(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inner.parents[1] / ".coding-os").mkdir()
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    assert project_at(Path()) == inner.resolve()


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
