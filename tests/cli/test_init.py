from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.adapters.agents import read_agents
from custodes.adapters.registry import Registry
from support.cos import Cos


def agents_of(project: Path) -> tuple[str, ...]:
    return read_agents(project)


def always_there(project: Path) -> set[str]:
    found = Registry.discover(project).descriptors.values()
    nothing_of_its_own = [one for one in found if not (one.cli or one.endpoint or one.models)]
    return {one.id for one in nothing_of_its_own if one.can("dispatch")}


def put_agent(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose only agent is that one; its program is not meant to be run."""
    program = tmp_path / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_it_writes_the_agents_it_found_and_the_next_command(
    cos: Cos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_agent("codex", tmp_path, monkeypatch)
    answer = cos("init", "--format", "json")
    assert answer.code == 0
    assert answer.document["wrote"] == [".coding-os/.gitignore", ".coding-os.yaml"]
    assert "cos supervision enable" in answer.document["next"]
    found = {one["id"] for one in answer.document["runtimes"] if one["found"]}
    assert set(agents_of(project)) == found >= always_there(project)


def test_a_runtime_whose_extra_is_not_installed_is_not_listed_and_says_how_to_add_it(
    cos: Cos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_agent("claude-agent-acp", tmp_path, monkeypatch)
    monkeypatch.setitem(sys.modules, "acp", None)
    (acp,) = [one for one in cos("init", "--format", "json").document["runtimes"] if one["id"] == "acp"]
    assert (acp["found"], acp["ready"]) == (False, False)
    assert "custodes[acp]" in acp["reason"]
    assert "acp" not in agents_of(project)


def test_where_nothing_is_ready_it_says_so_and_what_each_wants(
    cos: Cos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    answer = cos("init")
    assert answer.code == 0
    assert "not ready: no program is named; name one in .coding-os/adapters/" in answer.out
    assert answer.out.splitlines()[-1].startswith("nothing here is ready to take work: ")
    assert "cos dispatch" not in answer.out


def test_an_agent_that_came_later_is_told_and_the_file_stays(
    cos: Cos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    cos("init")
    before = (project / ".coding-os.yaml").read_bytes()
    put_agent("codex", tmp_path, monkeypatch)
    answer = cos("init")
    assert "found here and not among its agents: codex; to use one, add it there" in answer.out
    assert (project / ".coding-os.yaml").read_bytes() == before
    (project / ".coding-os.yaml").write_text("agents: [codex]\n")
    assert "not among its agents" not in cos("init").out


def test_an_endpoint_is_found_by_its_variables(
    cos: Cos, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for descriptor in Registry.discover(project).descriptors.values():
        if descriptor.endpoint is not None and descriptor.endpoint.key_env:
            monkeypatch.setenv(descriptor.endpoint.key_env, "not-a-key")
            cos("init")
            assert descriptor.id in agents_of(project)
            return
    pytest.fail("no adapter with an endpoint is built in")


def test_a_program_is_found_on_the_path_and_is_not_run(
    cos: Cos, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project / ".coding-os" / "adapters" / "fixture"
    folder.mkdir(parents=True)
    (folder / "dispatch.py").write_text("raise SystemExit('imported')")
    (folder / "adapter.yaml").write_text(
        "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}\n"
        "cli: {binary: fixture-agent}\n"
    )
    program = tmp_path / "bin" / "fixture-agent"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    answer = cos("init")
    assert "no program 'fixture-agent' on PATH" in answer.out
    (project / ".coding-os.yaml").unlink()
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    cos("init")
    assert "fixture" in agents_of(project)
    assert not (tmp_path / "was-run").exists()


def test_a_second_time_changes_nothing(cos: Cos, project: Path) -> None:
    (project / ".coding-os.yaml").write_text("agents: [mine]\n# a note\n")
    first = cos("init", "--format", "json").document
    assert first["kept"] == [".coding-os.yaml"]
    files = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert cos("init").code == 0
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == files
    assert (project / ".coding-os.yaml").read_text() == "agents: [mine]\n# a note\n"


def test_git_sees_the_settings_and_the_adapters_but_none_of_our_own_files(cos: Cos, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    cos("init")
    home = project / ".coding-os"
    for name in ("custodes.db", "custodes.db-wal", "custodes.db.damaged", "hub-settings.lock", "run.log"):
        (home / name).write_text("x")
    (home / "adapters").mkdir()
    for name in ("hub-settings.json", "adapters/adapter.yaml"):
        (home / name).write_text("x")
    seen = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert seen == [
        ".coding-os.yaml",
        ".coding-os/.gitignore",
        ".coding-os/adapters/adapter.yaml",
        ".coding-os/hub-settings.json",
    ]


def test_a_folder_that_cannot_be_written_is_one_line(cos: Cos, project: Path) -> None:
    (project / ".coding-os").write_text("a file in the way")
    answer = cos("init")
    assert answer.code == 1
    assert "cannot be written" in answer.err
    assert answer.err.count("\n") == 1
    assert not (project / ".coding-os.yaml").exists()
