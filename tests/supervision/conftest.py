"""What most of them begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import scripted


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    """A project with one adapter, which does what the test says. A module that needs more of them, or other
    ones, has its own fixture of this name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one")
