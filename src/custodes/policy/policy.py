"""What the operator decided, as Structs with every default (seed 000, "Routing policy")."""

from __future__ import annotations

from typing import Literal

import msgspec

Mode = Literal["explicit", "adaptive", "suggest"]
Complexity = Literal["CLEAR", "COMPLICATED", "COMPLEX", "CHAOTIC"]
FallbackPolicy = Literal["fail_closed", "same_adapter_default", "next_eligible"]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a role's work goes. An empty field is inherited from the next step of the resolution."""

    adapter: str = ""
    model: str = ""
    effort: str = ""


class Cooldown(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. ``maximum_seconds`` caps our own exponential backoff; a provider's stated wait wins up to
    ``retry_after_ceiling_seconds``."""

    default_seconds: int = 300
    maximum_seconds: int = 3600
    retry_after_ceiling_seconds: int = 691_200


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported beyond our own spans, where anything is exported at all. Contents are off by default
    (seed 000), and secrets in them are blotted out in any case."""

    relay: bool = True
    """A runtime's own spans are hung under its call, where it cannot join the trace by itself."""
    prompts: bool = False
    outputs: bool = False
    tool_arguments: bool = False
    """And what the tools returned."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """``.coding-os/hub-settings.json::model_routing``, normalized and complete."""

    enabled: bool = False
    mode: Mode = "explicit"
    complexity_threshold: Complexity = "COMPLICATED"
    fallback_policy: FallbackPolicy = "fail_closed"
    max_parallel: int = 3
    """Attempts that run at once on this host, 1 to 16."""
    max_live: int = 16
    """Attempts that have begun and not ended, those that wait for children of their own included, 1 to 256.
    It holds back new work, never the children of what has begun."""
    ask_seconds: int = 60
    """How long a runtime's ask for permission waits for an answer, 0 to 86,400; then it is denied."""
    cooldown: Cooldown = Cooldown()
    orchestrator: Target = Target()
    roles: dict[str, Target] = {}
    preset: str = ""
    """The active one of ``presets``; empty is none."""
    presets: dict[str, dict[str, Target]] = {}
    """Named sets of role hints. A hint gives way where its adapter cannot follow it."""
    telemetry: Telemetry = Telemetry()


def turn_defaults(policy: Policy, module_enabled: bool) -> Target:
    """What a host's composer falls back to when a turn names no model or effort: the orchestrator's; empty
    where one of the two gates is shut (seed 000, "Routing policy")."""
    return policy.orchestrator if module_enabled and policy.enabled else Target()
