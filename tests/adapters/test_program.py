"""A program on PATH: whatever was found before, the answer is what a new search would give."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from custodes.adapters.program import find_program


def program(folder: Path, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "tool"
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.pathsep.join(str(tmp_path / name) for name in ("first", "second", "third"))


def place(path: str) -> str | None:
    found = find_program("tool", path)
    assert (found and found.place) == shutil.which("tool", path=path)
    return found and found.place


def test_what_is_asked_again_is_searched_for_once(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = program(tmp_path / "second")
    first = find_program("tool", path)
    monkeypatch.setattr(shutil, "which", None)
    assert first == find_program("tool", path)
    assert first is not None
    assert first.place == str(file)


def test_one_that_comes_to_stand_before_it_is_found(tmp_path: Path, path: str) -> None:
    program(tmp_path / "second")
    place(path)
    earlier = program(tmp_path / "first")
    assert place(path) == str(earlier)


def test_one_before_it_that_becomes_runnable_is_found(tmp_path: Path, path: str) -> None:
    earlier = program(tmp_path / "first", 0o644)
    later = program(tmp_path / "second")
    assert place(path) == str(later)
    earlier.chmod(0o755)
    assert place(path) == str(earlier)


def test_one_that_is_gone_or_may_not_be_run_any_more_is_not_found(tmp_path: Path, path: str) -> None:
    file = program(tmp_path / "second")
    other = program(tmp_path / "third")
    assert place(path) == str(file)
    file.chmod(0o644)
    assert place(path) == str(other)
    other.unlink()
    assert place(path) is None
    file.chmod(0o755)
    assert place(path) == str(file)


def test_one_that_was_replaced_is_seen_as_another(tmp_path: Path, path: str) -> None:
    file = program(tmp_path / "second")
    target = program(tmp_path / "elsewhere")
    before = find_program("tool", path)
    file.unlink()
    file.symlink_to(target)
    after = find_program("tool", path)
    assert before is not None
    assert after is not None
    assert (after.place, after.real) == (before.place, str(target))
    assert after.at != before.at


def test_a_place_is_no_name_to_search_for(tmp_path: Path, path: str) -> None:
    file = program(tmp_path / "first")
    for _ in range(2):
        found = find_program(str(file), path)
        assert found is not None
        assert found.place == str(file)
