"""The agent card (seed 003, "Integration"): what the overseer is to whoever lists agents."""

from __future__ import annotations

import msgspec


class Card(msgspec.Struct, frozen=True, kw_only=True):
    agent: str = "supervisor"
    runtime: str = "hermes-cron"
    adapter: str = "supervisor"
    model: str | None = None
    """None: a script only, which spends no token."""
    capabilities: tuple[str, ...] = ("provider_health_check", "profile_switch", "incident_logging")
    connector: str = "local"
    approvals: str = "none"
    """To move a profile to another model of its own row is a low risk."""
    command: tuple[str, ...] = ("cos", "overseer", "tick")


CARD = Card()
