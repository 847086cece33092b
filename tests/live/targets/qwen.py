"""Qwen Code against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Expected, Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """A person's own settings allow the shell, so that what read-only work may do is the adapter's doing."""
    folder = home / ".qwen"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(
        json.dumps({"$version": 3, "permissions": {"allow": ["run_shell_command", "write_file"]}})
    )
    return {"OPENAI_API_KEY": "sk-dummy", "OPENAI_BASE_URL": provider.openai_url}


TARGET = Target(
    adapter="qwen",
    binary="qwen",
    model="loopback-model",
    aim=aim,
    # It prints neither the body nor the headers of a refusal, and this one states its wait nowhere else.
    differs={"usage_limit": Expected("capacity", retryable=True)},
)
