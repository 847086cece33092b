"""Agents that speak the Agent Client Protocol, against the loopback provider."""

from __future__ import annotations

from live.harness import Target
from live.targets import claude, codex, gemini

TARGETS = (
    Target(
        adapter="acp",
        name="acp-claude",
        binary="claude-agent-acp",
        model="claude-agent",
        aim=claude.aim,
    ),
    Target(
        adapter="acp",
        name="acp-codex",
        binary="codex-acp",
        model="codex-agent",
        aim=codex.aim,
        reads_with_shell=True,
    ),
    Target(adapter="acp", name="acp-gemini", binary="gemini", model="gemini-agent", aim=gemini.aim),
)
