"""Where a thread stands, asked of the registry: an adapter's module, loaded and checked like its runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from custodes.adapters import AdapterError, Registry, Transcript, UntrustedError

THREAD = "0f3c2a51-6d0e-4b7a-9a53-8a1a2f0c9d11"
FOUND = """
from custodes.adapters import Transcript
def transcript(native_id, environ):
    return Transcript(place=environ["HOME"], command=("mine", native_id))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return tmp_path


def own(home: Path, code: str) -> Registry:
    """A project with an adapter of its own, whose transcript module is ``code``; not trusted yet."""
    folder = home / "project" / ".coding-os" / "adapters" / "mine"
    folder.mkdir(parents=True)
    (folder / "adapter.yaml").write_text("runtime_entrypoints: {transcript: places.py}\n")
    (folder / "places.py").write_text(code)
    return Registry.discover(home / "project")


@pytest.mark.parametrize(
    ("adapter", "file", "command"),
    [
        ("claude", f".claude/projects/-srv-app/{THREAD}.jsonl", ("claude", "--resume", THREAD)),
        ("codex", f".codex/sessions/2026/11/30/rollout-x-{THREAD}.jsonl", ("codex", "resume", THREAD)),
    ],
)
def test_a_built_in_finds_its_threads(home: Path, adapter: str, file: str, command: tuple[str, ...]) -> None:
    registry = Registry.discover(home)
    assert registry.transcript(adapter, THREAD) == Transcript(command=command)
    (home / file).parent.mkdir(parents=True)
    (home / file).touch()
    assert registry.transcript(adapter, THREAD) == Transcript(place=str(home / file), command=command)


def test_an_adapter_that_names_no_module_knows_nothing(home: Path) -> None:
    assert Registry.discover(home).transcript("command", THREAD) == Transcript()


def test_an_unknown_adapter_is_named_with_its_near_miss(home: Path) -> None:
    with pytest.raises(AdapterError, match="did you mean 'codex'"):
        Registry.discover(home).transcript("codx", THREAD)


def test_a_projects_own_runs_once_it_is_trusted(home: Path) -> None:
    registry = own(home, f"open({str(home / 'ran')!r}, 'w').close()\n{FOUND}")
    with pytest.raises(UntrustedError, match="cos adapters trust mine"):
        registry.transcript("mine", "t1")
    assert not (home / "ran").exists()
    registry.trust("mine")
    assert registry.transcript("mine", "t1") == Transcript(place=str(home), command=("mine", "t1"))
    assert (home / "ran").exists()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1/0", "cannot be imported: ZeroDivisionError"),
        ("x = 1", r"has no function transcript\(native_id, environ\)"),
        ("def transcript(native_id, environ): raise OSError('x')", "failed: OSError: x"),
        ("def transcript(native_id): ...", "failed: TypeError"),
        ("def transcript(native_id, environ): return '/x'", "is no Transcript"),
    ],
)
def test_a_module_that_is_none_is_said_so(home: Path, code: str, says: str) -> None:
    registry = own(home, code)
    registry.trust("mine")
    with pytest.raises(AdapterError, match=rf"adapter 'mine': .*places\.py.*{says}"):
        registry.transcript("mine", "t1")


def test_asking_loads_no_runtime(home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from custodes.adapters import Registry; "
        f"Registry.discover(Path({str(home)!r})).transcript('claude', {THREAD!r}); "
        "print([m for m in sys.modules if m.endswith('.dispatch') or m.startswith('anyio')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
