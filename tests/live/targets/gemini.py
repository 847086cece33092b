"""Gemini CLI against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """A person's own settings allow the shell, so that what read-only work may do is the adapter's doing."""
    (home / ".gemini").mkdir(exist_ok=True)
    _settings(home, tools={"allowed": ["run_shell_command"]})
    return {"GEMINI_API_KEY": "AIza-dummy", "GOOGLE_GEMINI_BASE_URL": provider.url}


def heeded(settings: Path) -> bool:
    """Whether it takes an administrator's settings from this file: root's alone, as is every folder above."""
    places = (settings, *settings.parents)
    return all(place.stat().st_uid == 0 and not place.stat().st_mode & 0o022 for place in places)


def cautious(home: Path) -> None:
    _settings(home)


def _settings(home: Path, **more: object) -> None:
    said = {"security": {"auth": {"selectedType": "gemini-api-key"}}, **more}
    (home / ".gemini" / "settings.json").write_text(json.dumps(said))


TARGET = Target(
    adapter="gemini",
    binary="gemini",
    model="gemini-2.5-flash",
    aim=aim,
)
