"""Hermes against the loopback provider."""

from __future__ import annotations

from pathlib import Path

from live.harness import Expected, Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    folder = home / ".hermes"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(
        f"""model:
  default: loopback-model
  provider: custom
  base_url: {provider.openai_url}
  api_key: sk-dummy
  api_mode: chat_completions
"""
    )
    return {"HERMES_HOME": str(folder)}


TARGET = Target(
    adapter="hermes",
    binary="hermes",
    model="loopback-model",
    aim=aim,
    # It prints the message of a refusal and no more, and this one states its wait nowhere in it.
    differs={"usage_limit": Expected("capacity", retryable=True)},
    tools="it tells of no tool, so that one is running cannot be seen in its progress",
)
