"""Codex against the loopback provider."""

from __future__ import annotations

from pathlib import Path

from live.harness import Target
from support.loopback.provider import Provider


def aim(provider: Provider, home: Path) -> dict[str, str]:
    """A provider of the user's own configuration, with the retries such a provider has by default."""
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f"""model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{provider.openai_url}"
wire_api = "responses"
env_key = "CODEX_API_KEY"
supports_websockets = false
"""
    )
    return {"CODEX_API_KEY": "sk-dummy"}


def cautious(home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.write_text(f'approval_policy = "on-request"\n{config.read_text()}')


TARGET = Target(
    adapter="codex", binary="codex", model="gpt-6.2-sol", effort="low", aim=aim, reads_with_shell=True
)
