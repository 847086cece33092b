"""A project of its own for each test, a user configuration of its own, and the program called in process."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.cli.app import call
from support.cos import Answer, Cos, Tiered


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cos(project: Path, capsys: pytest.CaptureFixture[str]) -> Cos:
    def run(*words: str) -> Answer:
        capsys.readouterr()
        code = call(words)
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def tiered(project: Path) -> Tiered:
    """A project with a fixture adapter: nothing of it is ever run here."""
    folder = project / ".coding-os" / "adapters" / "fixture"
    folder.mkdir(parents=True)
    (folder / "dispatch.py").write_text("")
    (folder / "adapter.yaml").write_text(
        "version: 1\n"
        "label: A fixture\n"
        "runtime_entrypoints:\n"
        "  dispatch: dispatch.py\n"
        "  capabilities: [dispatch, model_selection, effort_selection]\n"
        "models:\n"
        "  - {id: large-1, bucket: large, default: true}\n"
        "  - {id: small-1, bucket: small}\n"
        "efforts: [low, medium, high]\n"
    )
    (project / ".coding-os.yaml").write_text("agents: [fixture]\n")
    return Tiered(project, "fixture")
