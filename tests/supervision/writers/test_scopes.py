"""Acceptance F11: which writers take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.supervision.writers import scopes as scopes_module
from custodes.supervision.writers.scopes import READ_ONLY, conflicts, outside, resolve


def test_the_same_scope_conflicts(tmp_path: Path) -> None:
    assert conflicts(resolve(tmp_path, ["src"]), resolve(tmp_path, ["src"]))


def test_a_folder_conflicts_with_what_it_contains(tmp_path: Path) -> None:
    assert conflicts(resolve(tmp_path, ["src/"]), resolve(tmp_path, ["src/a.py"]))
    assert conflicts(resolve(tmp_path, ["src/a.py"]), resolve(tmp_path, ["src/"]))


def test_neighbours_do_not_conflict_even_where_one_name_begins_with_the_other(tmp_path: Path) -> None:
    assert not conflicts(resolve(tmp_path, ["src"]), resolve(tmp_path, ["src-old"]))


def test_a_symlink_is_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("src")
    assert conflicts(resolve(tmp_path, ["link/a.py"]), resolve(tmp_path, ["src"]))


def test_dots_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert conflicts(resolve(tmp_path, ["docs/../src"]), resolve(tmp_path, ["src/a.py"]))
    assert not conflicts(resolve(tmp_path, ["docs/../src"]), resolve(tmp_path, ["docs"]))


def test_no_path_means_the_whole_project(tmp_path: Path) -> None:
    assert conflicts(resolve(tmp_path, []), resolve(tmp_path, ["anything/at/all"]))


def test_an_absolute_path_outside_the_project_is_a_place_of_its_own(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert not conflicts(resolve(project, []), resolve(project, [str(tmp_path / "elsewhere")]))


def test_what_leaves_the_project_is_told_however_it_is_written(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "out").symlink_to(tmp_path)
    away = ("..", "../other", str(tmp_path / "project-old"), "out/other")
    inside = (".", "src", "src/../new", str(project / "src"), "out/project/src")
    assert outside(project, (*inside, *away)) == away
    assert outside(project / "src" / "..", inside) == ()


def test_read_only_work_conflicts_with_nothing(tmp_path: Path) -> None:
    assert not conflicts(READ_ONLY, resolve(tmp_path, []))
    assert not conflicts(READ_ONLY, READ_ONLY)


def test_a_case_variant_conflicts_where_the_file_system_folds_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe").mkdir()
    folds = (tmp_path / "PROBE").exists()
    assert conflicts(resolve(tmp_path, ["Src"]), resolve(tmp_path, ["src"])) is folds
    monkeypatch.setattr(scopes_module, "_folds_case", lambda _path: True)
    assert conflicts(resolve(tmp_path, ["Src"]), resolve(tmp_path, ["src/A.py"]))


def test_two_nested_repositories_do_not_conflict(tmp_path: Path) -> None:
    for repository in (".", "vendor/one", "vendor/two"):
        (tmp_path / repository / ".git").mkdir(parents=True)
    assert not conflicts(resolve(tmp_path, ["vendor/one"]), resolve(tmp_path, ["vendor/two"]))
    assert not conflicts(resolve(tmp_path, ["vendor"]), resolve(tmp_path, ["vendor/one/src"]))


def test_a_plain_folder_conflicts_with_a_repository_inside_it(tmp_path: Path) -> None:
    (tmp_path / "workspace/api/.git").mkdir(parents=True)
    assert conflicts(resolve(tmp_path, ["workspace"]), resolve(tmp_path, ["workspace/api"]))
