"""Discovery: what is found, merged, refused, cached; and that none of it runs anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.adapters import AdapterError, Registry


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def own(project: Path, name: str, text: str) -> Path:
    folder = project / ".coding-os" / "adapters" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter.yaml").write_text(text)
    return folder


def test_every_built_in_loads_clean(project: Path) -> None:
    registry = Registry.discover(project)
    assert {"command", "openai"} <= set(registry.descriptors)
    assert not registry.errors
    assert registry.warnings == ()
    assert registry.agents == ()
    assert registry.eligible() == ()
    for adapter, found in registry.descriptors.items():
        assert (Path(found.folder) / "README.md").is_file(), adapter
        if found.can("dispatch"):
            assert callable(registry.runtime(adapter).dispatch)


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("agents: [openai, command, openai]", ("openai", "command")),
        ("agents: openai", ("openai",)),
        ("agents:\n  - id: openai\n  - {id: command, enabled: false}", ("openai",)),
        ("agents:\n  openai: true\n  command: {enabled: false}\n  other:", ("openai", "other")),
        ("other: 1", ()),
        ("agents:", ()),
        ("", ()),
    ],
)
def test_the_projects_list_is_read_in_order(project: Path, text: str, agents: tuple[str, ...]) -> None:
    (project / ".coding-os.yaml").write_text(text)
    registry = Registry.discover(project)
    assert registry.agents == agents
    assert registry.eligible() == tuple(agent for agent in agents if agent != "other")


@pytest.mark.parametrize("text", ["agents: 5", "agents: [1]", "agents: [", "- x", "agents: {a: 5}"])
def test_a_broken_list_is_said_and_makes_nothing_eligible(project: Path, text: str) -> None:
    (project / ".coding-os.yaml").write_text(text)
    registry = Registry.discover(project)
    assert registry.errors[".coding-os.yaml"].startswith(str(project / ".coding-os.yaml"))
    assert registry.eligible() == ()
    assert "openai" in registry.descriptors


def test_an_unknown_agent_is_a_warning_with_its_near_miss(project: Path) -> None:
    (project / ".coding-os.yaml").write_text("agents: [openia]")
    [warning] = Registry.discover(project).warnings
    assert "did you mean 'openai'?" in warning


def test_a_project_merges_over_the_built_in_field_by_field(project: Path) -> None:
    own(
        project,
        "openai",
        "label: Ours\nmodels: [{id: m, bucket: b, default: true}]\nendpoint: {key_env: OUR_KEY}",
    )
    found = Registry.discover(project).descriptors["openai"]
    assert found.endpoint is not None
    assert (found.label, found.endpoint.key_env, found.endpoint.base_url_env) == (
        "Ours",
        "OUR_KEY",
        "OPENAI_BASE_URL",
    )
    assert found.can("usage")
    assert (found.origin, found.pool("m"), found.default_model) == ("project", "openai:b", "m")
    assert Path(found.folder).name == "openai"
    assert not Path(found.folder).is_relative_to(project)


def test_a_program_with_a_slash_stands_in_the_project(project: Path) -> None:
    own(
        project,
        "command",
        "models:\n  - {id: a, argv: [./t/a, ./x]}\n  - {id: b, argv: [make]}\n  - {id: c, argv: [/bin/ls]}",
    )
    models = Registry.discover(project).descriptors["command"].models
    assert [m.argv for m in models] == [(str(project / "t/a"), "./x"), ("make",), ("/bin/ls",)]


def test_a_broken_adapter_takes_no_other_down(project: Path) -> None:
    own(project, "bad", "modles: []")
    own(project, "openai", "efforts: {}")
    own(project, "elsewhere", "id: other")
    own(project, "gone", "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}")
    registry = Registry.discover(project)
    assert "did you mean 'models'?" in registry.errors["bad"]
    assert "efforts" in registry.errors["openai"]
    assert "'elsewhere'" in registry.errors["elsewhere"]
    assert "runtime_entrypoints.dispatch" in registry.errors["gone"]
    assert "openai" not in registry.descriptors, "a broken override must not read as the built-in"
    assert registry.readiness("openai").code == "error"
    with pytest.raises(AdapterError, match="efforts"):
        registry.runtime("openai")
    assert callable(registry.runtime("command").dispatch)


def test_an_unknown_adapter_is_named_with_its_near_miss(project: Path) -> None:
    registry = Registry.discover(project)
    with pytest.raises(AdapterError, match="did you mean 'openai'"):
        registry.runtime("opnai")
    with pytest.raises(AdapterError, match="needs no trust"):
        registry.trust("openai")


def test_asking_again_reads_no_file(project: Path) -> None:
    own(project, "command", "models: [{id: a, argv: [make]}]")
    (project / ".coding-os.yaml").write_text("agents: [command]")
    first = Registry.discover(project)
    opened: list[object] = []
    sys.addaudithook(lambda name, args: opened.append(args[0]) if name == "open" and watching else None)
    watching = True
    try:
        second = Registry.discover(project)
        first.readiness("openai")
    finally:
        watching = False
    assert second is first
    assert opened == []


@pytest.mark.parametrize("change", ["agents", "own", "remove"])
def test_a_change_is_seen_at_the_next_asking(project: Path, change: str) -> None:
    folder = own(project, "command", "models: [{id: a, argv: [make]}]")
    first = Registry.discover(project)
    if change == "agents":
        (project / ".coding-os.yaml").write_text("agents: [command]")
    elif change == "own":
        own(project, "command", "models: [{id: b, argv: [make]}]")
    else:
        (folder / "adapter.yaml").unlink()
    assert Registry.discover(project) is not first


def test_readiness_follows_key_address_and_program(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry.discover(project)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    without = registry.readiness("openai")
    assert (without.code, without.reason) == ("no_key", "no key: set OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-1")
    with_key = registry.readiness("openai")
    assert with_key.ready
    assert with_key.fingerprint != without.fingerprint
    monkeypatch.setenv("OPENAI_API_KEY", "canary-2")
    assert registry.readiness("openai").fingerprint == with_key.fingerprint
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
    assert registry.readiness("openai").ready
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:canary@h/")
    assert registry.readiness("openai").code == "endpoint"
    assert "canary" not in registry.readiness("openai").reason
    assert registry.readiness("command").code == "no_program"


def test_a_replaced_program_changes_the_fingerprint_and_is_never_run(project: Path, tmp_path: Path) -> None:
    program = project / "tool"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    own(project, "command", "models: [{id: a, argv: [./tool]}]")
    registry = Registry.discover(project)
    registry.trust("command")
    assert registry.readiness("command").code == "missing"
    program.chmod(0o755)
    first = registry.readiness("command")
    assert first.ready
    os.utime(program, ns=(1, 1))
    assert registry.readiness("command").fingerprint != first.fingerprint
    assert not (tmp_path / "ran").exists()


def test_a_project_s_own_module_that_was_mended_changes_the_fingerprint(project: Path) -> None:
    folder = own(project, "ours", "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}")
    prints = []
    for text in ("def runtime(:\n", "def runtime(descriptor): ...\n"):
        (folder / "dispatch.py").write_text(text)
        registry = Registry.discover(project)
        registry.trust("ours")
        assert registry.readiness("ours").ready
        prints.append(registry.readiness("ours").fingerprint)
    assert len({*prints}) == 2


def installed(site: Path, name: str, value: str) -> None:
    info = site / f"{name}_dist-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[custodes.adapters]\n{name} = {value}\n")


def test_an_installed_adapter_is_found_without_being_imported(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    package = site / "stranger_pkg" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (package / "adapter.yaml").write_text(
        "runtime_entrypoints: {dispatch: go.py, capabilities: [dispatch]}\nmodels: [{id: m}]\n"
    )
    (package / "go.py").write_text(
        "class R:\n    async def dispatch(self, request, progress): ...\ndef runtime(d): return R()\n"
    )
    installed(site, "stranger", "stranger_pkg.inner")
    installed(site, "openai", "stranger_pkg.inner")
    installed(site, "nowhere", "no_such_package_here")
    monkeypatch.syspath_prepend(str(site))
    registry = Registry.discover(project)
    assert registry.descriptors["stranger"].origin == "entry_point"
    assert registry.readiness("stranger").ready
    assert "already the id" in registry.errors["openai-dist:openai"]
    assert registry.descriptors["openai"].origin == "builtin"
    assert "no_such_package_here" in registry.errors["nowhere-dist:nowhere"]
    assert not (tmp_path / "ran").exists()
    registry.runtime("stranger")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "code", ["1/0", "x = 1", "def runtime(descriptor): raise OSError('x')", "def runtime(d): pass"]
)
def test_a_dispatch_module_that_is_none_is_said_so(project: Path, code: str) -> None:
    folder = own(project, "mine", "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}")
    (folder / "dispatch.py").write_text(code)
    registry = Registry.discover(project)
    registry.trust("mine")
    with pytest.raises(AdapterError, match=r"adapter 'mine': .*dispatch\.py"):
        registry.runtime("mine")


def test_the_door_loads_neither_yaml_nor_http_nor_a_runtime() -> None:
    code = (
        "import sys, custodes.adapters; "
        "print([m for m in sys.modules if m.split('.')[0] in ('ruamel', 'httpx2', 'filelock', 'trio')"
        " or m.endswith('.dispatch')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
