"""Agents that speak the Agent Client Protocol, against the loopback provider."""

from __future__ import annotations

from custodes.adapters.acp import agents
from live.harness import Expected, Target
from live.targets import claude, codex, gemini
from live.targets.gemini import heeded

# Neither tells the wait of a limit over the protocol.
_NO_WAIT = {"limit": Expected("capacity", retryable=True)}

TARGETS = (
    Target(
        adapter="acp",
        name="acp-claude",
        binary="claude-agent-acp",
        model="claude-agent",
        aim=claude.aim,
        cautious=claude.cautious,
        differs=_NO_WAIT,
    ),
    Target(
        adapter="acp",
        name="acp-codex",
        binary="codex-acp",
        model="codex-agent",
        aim=codex.aim,
        cautious=codex.cautious,
        differs=_NO_WAIT,
        reads_with_shell=True,
    ),
    Target(
        adapter="acp",
        name="acp-gemini",
        binary="gemini",
        model="gemini-agent",
        aim=gemini.aim,
        cautious=gemini.cautious,
        differs={"usage_limit": Expected("capacity", retryable=True)},  # nor this one the reset of a plan's
        resumes_next_minute=True,
        sits_out="" if heeded(agents.HOME / "gemini.json") else "others than root may write to our settings",
    ),
)
