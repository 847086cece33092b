"""Claude Code against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Expected, Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """Its user allows every command, so that what read-only work may do is the adapter's doing alone."""
    (home / ".claude").mkdir(exist_ok=True)
    settings = {"permissions": {"allow": ["Bash", "Write", "Edit"]}}
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    # A login, as a subscriber has it; a dummy.
    return {"ANTHROPIC_BASE_URL": provider.url, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}


# It adds a pause of its own, partly by chance, to the wait that was stated, and tells only the sum.
_LIMIT = Expected("capacity", retryable=True, wait=(7, 9))

TARGET = Target(
    adapter="claude",
    binary="claude",
    model="claude-sonnet-5",
    effort="low",
    aim=aim,
    differs={"limit": _LIMIT},
)
