"""Claude Code against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """Its user allows every command, so that what read-only work may do is the adapter's doing alone."""
    (home / ".claude").mkdir(exist_ok=True)
    settings = {"permissions": {"allow": ["Bash", "Write", "Edit"]}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    # A login, as a subscriber has it; a dummy.
    return {"ANTHROPIC_BASE_URL": provider.url, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}


def cautious(home: Path) -> None:
    (home / ".claude" / "settings.json").write_text("{}")


TARGET = Target(
    adapter="claude", binary="claude", model="claude-sonnet-5", effort="low", aim=aim, cautious=cautious
)
