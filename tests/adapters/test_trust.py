"""A project's own adapter is data until it is trusted (acceptance R22)."""

from __future__ import annotations

import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from custodes.adapters import AdapterError, Registry, UntrustedError, trust

DISPATCH = """
from pathlib import Path
from . import helper
Path({mark!r}).touch()
def runtime(descriptor):
    return helper.Runtime()
"""
HELPER = "class Runtime:\n    async def dispatch(self, request, progress): ...\n"
YAML = "runtime_entrypoints: {dispatch: dispatch.py, capabilities: [dispatch]}\n"


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project whose adapter leaves a mark if any of it ever runs."""
    folder = tmp_path / "project" / ".coding-os" / "adapters" / "mine"
    folder.mkdir(parents=True)
    (folder / "adapter.yaml").write_text(YAML)
    (folder / "dispatch.py").write_text(DISPATCH.format(mark=str(tmp_path / "ran")))
    (folder / "helper.py").write_text(HELPER)
    (tmp_path / "project" / ".coding-os.yaml").write_text("agents: [mine]\n")
    return folder


def project(folder: Path) -> Path:
    return folder.parents[2]


def test_nothing_of_it_runs_before_trust(hostile: Path, tmp_path: Path) -> None:
    registry = Registry.discover(project(hostile))
    state = registry.readiness("mine")
    assert (state.ready, state.code) == (False, "untrusted")
    assert "cos adapters trust mine" in state.reason
    with pytest.raises(UntrustedError, match="cos adapters trust mine"):
        registry.runtime("mine")
    assert registry.eligible() == ("mine",)
    assert not (tmp_path / "ran").exists()


def test_trusted_it_runs_and_running_it_does_not_undo_the_trust(hostile: Path, tmp_path: Path) -> None:
    registry = Registry.discover(project(hostile))
    registry.trust("mine")
    assert registry.readiness("mine").ready
    assert registry.runtime("mine") is registry.runtime("mine")
    assert (tmp_path / "ran").exists()
    assert sorted(p.name for p in hostile.iterdir()) == ["adapter.yaml", "dispatch.py", "helper.py"]
    assert Registry.discover(project(hostile)).readiness("mine").ready


def _edit(folder: Path) -> None:
    (folder / "helper.py").write_text(HELPER + "# more\n")


def _same_size(folder: Path) -> None:
    at = (folder / "helper.py").stat()
    (folder / "helper.py").write_text(HELPER.replace("Runtime", "runtimE"))
    os.utime(folder / "helper.py", ns=(at.st_atime_ns, at.st_mtime_ns))


def _add(folder: Path) -> None:
    (folder / "__pycache__").mkdir()


def _mode(folder: Path) -> None:
    (folder / "helper.py").chmod(0o755)


def _rename(folder: Path) -> None:
    (folder / "helper.py").rename(folder / "other.py")


def _link(folder: Path) -> None:
    (folder / "x").symlink_to("helper.py")


@pytest.mark.parametrize("change", [_edit, _same_size, _add, _mode, _rename, _link])
def test_any_change_undoes_the_trust(hostile: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    before = Registry.discover(project(hostile))
    before.trust("mine")
    assert before.readiness("mine").ready
    change(hostile)
    for registry in (before, Registry.discover(project(hostile))):
        assert registry.readiness("mine").code == "untrusted"
        with pytest.raises(UntrustedError):
            registry.runtime("mine")
    assert not (tmp_path / "ran").exists()


def test_a_trust_does_not_cover_what_was_read_before_it(hostile: Path) -> None:
    (hostile / "adapter.yaml").write_text(YAML + "label: first\n")
    old = Registry.discover(project(hostile))
    (hostile / "adapter.yaml").write_text(YAML + "label: second\n")
    new = Registry.discover(project(hostile))
    new.trust("mine")
    assert new.readiness("mine").ready
    assert old.readiness("mine").code == "untrusted"


def test_an_override_of_a_built_in_takes_the_built_in_with_it_until_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".coding-os" / "adapters" / "openai"
    folder.mkdir(parents=True)
    (folder / "adapter.yaml").write_text("endpoint: {base_url: 'http://127.0.0.1:9/v1'}\n")
    registry = Registry.discover(tmp_path / "project")
    assert registry.readiness("openai").code == "untrusted"
    with pytest.raises(UntrustedError):
        registry.runtime("openai")
    registry.trust("openai")
    assert registry.readiness("openai").ready
    registry.runtime("openai")
    assert registry.distrust("openai")
    assert registry.readiness("openai").code == "untrusted"


@pytest.mark.parametrize("odd", ["link-out", "fifo", "folder-link", "yaml-link"])
def test_what_a_hash_cannot_cover_is_refused_unread(hostile: Path, tmp_path: Path, odd: str) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("canary: [\n")
    if odd == "link-out":
        (hostile / "link").symlink_to(outside)
    elif odd == "fifo":
        os.mkfifo(hostile / "pipe")
    elif odd == "yaml-link":
        (hostile / "adapter.yaml").unlink()
        (hostile / "adapter.yaml").symlink_to(outside)
    else:
        moved = tmp_path / "moved"
        hostile.rename(moved)
        hostile.symlink_to(moved)
    registry = Registry.discover(project(hostile))
    assert "mine" in registry.errors
    assert "line 1" not in registry.errors["mine"]
    assert not registry.readiness("mine").ready
    with pytest.raises(AdapterError):
        registry.trust("mine")
    assert "command" in registry.descriptors


def test_the_trust_file_is_the_users_alone(hostile: Path) -> None:
    registry = Registry.discover(project(hostile))
    registry.trust("mine")
    file = trust.trust_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o666)
    assert "chmod 600" in registry.readiness("mine").reason
    file.chmod(0o600)
    assert registry.readiness("mine").ready
    torn = file.read_bytes()[:-10]
    file.write_bytes(torn)
    assert registry.readiness("mine").code == "untrusted"
    with pytest.raises(AdapterError, match="repair or remove"):
        registry.trust("mine")
    assert file.read_bytes() == torn


def test_a_relative_configuration_home_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "inside/the/repository")
    assert trust.trust_file() == Path.home() / ".config" / "custodes" / "trust.json"


def _trust_many(folders: list[Path]) -> None:
    for folder in folders:
        trust.trust(folder)


def test_concurrent_trusts_lose_none(tmp_path: Path) -> None:
    folders = [tmp_path / f"f{n}" for n in range(24)]
    for folder in folders:
        folder.mkdir()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_trust_many, args=(folders[n::3],)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert len(trust.read_trust(trust.trust_file()).folders) == 24
