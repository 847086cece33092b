from __future__ import annotations

import os
from pathlib import Path

import pytest

import custodes
from custodes.policy.project import RUN_PROJECT, nearest_project


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder two levels below what may be a project, in the home of nobody who has one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path.resolve() / "project" / "src" / "deep"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("mark", [".coding-os.yaml", ".coding-os"])
def test_in_a_subfolder_the_nearest_project_above_is_meant(inner: Path, mark: str) -> None:
    project = inner.parents[1]
    (project / mark).mkdir()
    (project.parent / mark).mkdir()
    assert nearest_project(inner) == project


def test_without_a_project_above_it_is_that_folder_itself(inner: Path) -> None:
    assert nearest_project(inner) == inner


def test_a_project_that_somebody_else_put_above_is_not_followed(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inner.parents[1] / ".coding-os").mkdir()
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody_else)
    assert nearest_project(inner) == inner


def test_the_root_of_a_repository_is_looked_at_and_nothing_above_it(inner: Path) -> None:
    repository, project = inner.parent, inner.parents[1]
    (project / ".coding-os").mkdir()
    (repository / ".git").write_text("gitdir: elsewhere\n")  # as a worktree and a submodule have it
    assert nearest_project(inner) == inner
    (repository / ".coding-os.yaml").touch()
    assert nearest_project(inner) == repository


def test_what_lies_in_a_persons_home_is_no_project_of_what_is_below_it(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = inner.parents[1]
    monkeypatch.setenv("HOME", str(home))
    (home / ".coding-os").mkdir()
    assert nearest_project(inner) == inner
    assert nearest_project(home) == home


def test_a_childs_process_finds_the_project_of_its_run_from_another_repository_inside(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = inner.parents[1]
    (project / ".coding-os").mkdir()
    (inner / ".git").mkdir()
    assert nearest_project(inner) == inner
    monkeypatch.setenv(RUN_PROJECT, str(project))
    assert nearest_project(inner) == project


def test_a_host_that_names_no_project_gets_the_one_that_the_command_line_finds(
    inner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (inner.parents[1] / ".coding-os").mkdir()
    monkeypatch.chdir(inner)
    assert custodes.Supervision().project == inner.parents[1]
    assert custodes.Supervision(".").project == inner
