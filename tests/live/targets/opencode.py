"""OpenCode against the loopback provider."""

from __future__ import annotations

import json
from pathlib import Path

from live.harness import Expected, Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """A person's own configuration allows everything, so that what read-only work may do is the adapter's
    doing alone."""
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    loopback = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "loopback",
        "options": {"baseURL": provider.openai_url, "apiKey": "sk-dummy"},
        "models": {
            "loopback-model": {
                "name": "loopback",
                "reasoning": True,
                "limit": {"context": 128000, "output": 4096},
                "variants": {effort: {"reasoningEffort": effort} for effort in ("low", "high")},
            }
        },
    }
    allowed = {"bash": "allow", "edit": "allow", "write": "allow"}
    configuration = {
        "provider": {"loopback": loopback},
        "permission": allowed,
        "agent": {"build": {"permission": allowed}},
    }
    (folder / "opencode.json").write_text(json.dumps(configuration))
    return {}


TARGET = Target(
    adapter="opencode",
    binary="opencode",
    model="loopback/loopback-model",
    effort="low",
    aim=aim,
    # Its log has the message of a refusal and no more, and this one states its wait nowhere in it.
    differs={"usage_limit": Expected("capacity", retryable=True)},
)
