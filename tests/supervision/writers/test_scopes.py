"""Acceptance F11: which writers take turns, and in what order."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from custodes.supervision.writers import scopes as scopes_module
from custodes.supervision.writers.scopes import READ_ONLY, Scopes, conflicts, outside, resolve


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


@pytest.mark.anyio
async def test_conflicting_writers_take_turns_in_the_order_they_came(tmp_path: Path) -> None:
    line, order, running = Scopes(), list[int](), 0

    async def write(number: int) -> None:
        nonlocal running
        async with line.hold(resolve(tmp_path, ["src"])):
            running += 1
            assert running == 1
            await anyio.lowlevel.checkpoint()
            order.append(number)
            running -= 1

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(write, number)
            await anyio.wait_all_tasks_blocked()
    assert order == [0, 1, 2, 3, 4]


@pytest.mark.anyio
async def test_writers_of_different_scopes_run_together(tmp_path: Path) -> None:
    line = Scopes()
    async with line.hold(resolve(tmp_path, ["src"])):
        with anyio.fail_after(5):
            async with line.hold(resolve(tmp_path, ["docs"])):
                pass


@pytest.mark.anyio
async def test_one_that_waits_is_not_overtaken_by_a_later_one_that_conflicts_with_it(tmp_path: Path) -> None:
    line, order = Scopes(), list[str]()

    async def write(name: str, *paths: str) -> None:
        async with line.hold(resolve(tmp_path, paths)):
            order.append(name)

    async with anyio.create_task_group() as group, line.hold(resolve(tmp_path, ["src"])):
        group.start_soon(write, "both", "src", "docs")
        await anyio.wait_all_tasks_blocked()
        group.start_soon(write, "docs", "docs")
        await anyio.wait_all_tasks_blocked()
        assert order == []
    assert order == ["both", "docs"]


@pytest.mark.anyio
async def test_a_cancelled_waiter_leaves_the_line(tmp_path: Path) -> None:
    line = Scopes()

    async def write() -> None:
        async with line.hold(resolve(tmp_path, ["src"])):
            pytest.fail("it was cancelled while it waited")

    async with line.hold(resolve(tmp_path, ["src"])), anyio.create_task_group() as group:
        group.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not line.would_wait(resolve(tmp_path, [os.curdir]))
