"""`cos adapters check`: the program, its version, what is missing; and who is never run for it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from custodes.adapters.check import LACKING, older
from custodes.adapters.descriptor import Capability
from support.cos import Cos

RUNTIME = """class Ours:
    async def dispatch(self, request, progress):
        raise NotImplementedError
"""


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(folder: Path, name: str, text: str) -> Path:
    """A program that leaves a mark beside itself when it is run."""
    path = folder / name
    path.write_text(f"#!/bin/sh\ntouch {folder}/ran\n{text}\n")
    path.chmod(0o755)
    return path


def own(project: Path, minimum: str = "1.2.0") -> None:
    """An adapter of the project's own that names a program."""
    folder = project / ".coding-os" / "adapters" / "own"
    folder.mkdir(parents=True)
    (folder / "dispatch.py").write_text("def runtime(descriptor):\n    return Ours()\n\n\n" + RUNTIME)
    (folder / "adapter.yaml").write_text(
        "version: 1\nlabel: Our own\n"
        "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch, usage]}\n"
        f"cli: {{binary: ours, version: [--version], minimum: {minimum}}}\n"
    )
    (project / ".coding-os.yaml").write_text("agents: [own]\n")


def test_a_project_s_own_adapter_is_not_run_before_it_is_trusted(
    cos: Cos, project: Path, bin_folder: Path
) -> None:
    own(project)
    program(bin_folder, "ours", "echo ours 1.3.0")
    answer = cos("adapters", "check", "own", "--format", "json")
    assert answer.code == 1
    assert answer.document["version"] is None
    assert "untrusted" in answer.document["problems"][0]
    assert not (bin_folder / "ran").exists()
    cos("adapters", "trust", "own")
    answer = cos("adapters", "check", "own", "--format", "json")
    assert (answer.code, answer.document["version"], answer.document["problems"]) == (0, "1.3.0", [])
    assert (bin_folder / "ran").exists()


def test_a_module_that_cannot_be_imported_is_said_with_its_line(
    cos: Cos, project: Path, bin_folder: Path
) -> None:
    own(project)
    program(bin_folder, "ours", "echo ours 1.3.0")
    (project / ".coding-os" / "adapters" / "own" / "dispatch.py").write_text("def runtime(:\n")
    cos("adapters", "trust", "own")
    answer = cos("adapters", "check", "own", "--format", "json")
    assert answer.code == 1
    (problem,) = answer.document["problems"]
    assert "dispatch.py cannot be imported: SyntaxError" in problem
    assert "line 1" in problem


def test_a_version_that_is_too_old_says_what_is_needed(cos: Cos, project: Path, bin_folder: Path) -> None:
    own(project, minimum="1.10.0")
    program(bin_folder, "ours", "echo version 1.9.4 of ours")
    cos("adapters", "trust", "own")
    answer = cos("adapters", "check", "own")
    assert answer.code == 1
    assert "version 1.9.4 is too old; Our own needs 1.10.0" in answer.out


@pytest.mark.parametrize(
    ("text", "says"), [("exit 3", "`ours --version` ended with 3"), ("echo hello", "named no version")]
)
def test_a_program_that_says_no_version_is_named(
    cos: Cos, project: Path, bin_folder: Path, text: str, says: str
) -> None:
    own(project)
    program(bin_folder, "ours", text)
    cos("adapters", "trust", "own")
    assert says in cos("adapters", "check", "own").out


def test_a_program_that_is_not_there_is_named(cos: Cos, project: Path, bin_folder: Path) -> None:
    own(project)
    cos("adapters", "trust", "own")
    answer = cos("adapters", "check", "own")
    assert answer.code == 1
    assert "program 'ours' was not found on PATH" in answer.out


def test_what_it_does_not_declare_is_told_with_what_that_means(
    cos: Cos, project: Path, bin_folder: Path
) -> None:
    own(project)
    lacks = cos("adapters", "check", "own", "--format", "json").document["lacks"]
    assert lacks["cost"] == "its cost is not known"
    assert set(lacks) == set(get_args(Capability)) - {"dispatch", "usage"}
    assert set(LACKING) == set(get_args(Capability))


def test_an_unknown_adapter_names_the_near_miss(cos: Cos, project: Path) -> None:
    answer = cos("adapters", "check", "comand")
    assert answer.code == 1
    assert "did you mean 'command'" in answer.err


def test_live_asks_the_runtime_for_real_and_changes_no_health(cos: Cos, programs: Path) -> None:
    answer = cos("adapters", "check", "command", "--live", "--format", "json")
    assert answer.code == 0
    assert answer.document["live"]["summary"] == "observer saw a.txt"
    assert not (programs / ".coding-os" / "custodes.db").exists()


@pytest.mark.parametrize(
    ("version", "minimum", "expected"),
    [("1.9", "1.10", True), ("1.10", "1.9", False), ("2.0", "2.0.0", False), ("2.0.0", "2.0.1", True)],
)
def test_versions_compare_number_by_number(version: str, minimum: str, expected: bool) -> None:
    assert older(version, minimum) is expected
