"""Gemini CLI against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """A person's own settings allow the shell, so that what read-only work may do is the adapter's doing."""
    folder = home / ".gemini"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "tools": {"allowed": ["run_shell_command"]},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "AIza-dummy", "GOOGLE_GEMINI_BASE_URL": provider.url}


TARGET = Target(
    adapter="gemini",
    binary="gemini",
    model="gemini-2.5-flash",
    aim=aim,
)
