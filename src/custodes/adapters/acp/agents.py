"""What is known of well-known agents beyond the protocol: their login's variables, and how to quiet and
narrow them. An agent that is not listed gets the protocol alone and the variables in ``readiness.env``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

HOME = Path(__file__).parent

READ_ONLY = ("read-only", "plan")
"""The session modes in which an agent does not write, by the ids the agents tried give them."""
WRITES = ("workspace-write", "acceptEdits", "autoEdit", "auto-edit", "accept_edits", "build", "default")
"""Those in which it writes in its folder, and asks for the rest. None that approves everything by itself."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """``kept`` are patterns of variables that reach it, ``quiet`` what it is given beside them, ``narrow``
    what read-only work says when a session begins (``_meta``)."""

    kept: tuple[str, ...] = ()
    quiet: Mapping[str, str] = {}
    narrow: Mapping[str, Any] = {}


_READ_TOOLS = ["Read", "Grep", "Glob", "WebFetch", "WebSearch"]
KNOWN: dict[str, Agent] = {
    "claude-agent-acp": Agent(
        kept=(r"ANTHROPIC_\w+", r"CLAUDE_\w+"),
        quiet={
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "0",  # the wait of a limit does not come through, so nothing is lost
        },
        # In its plan mode a shell that the user's settings allow still runs, so there is none.
        narrow={
            "claudeCode": {
                "options": {
                    "tools": _READ_TOOLS,
                    "strictMcpConfig": True,
                    "allowDangerouslySkipPermissions": False,
                }
            }
        },
    ),
    "codex-acp": Agent(kept=(r"CODEX_\w+", r"OPENAI_\w+")),
    "gemini": Agent(
        kept=(r"GEMINI_\w+", r"GOOGLE_\w+", "CODE_ASSIST_ENDPOINT"),
        quiet={
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(HOME / "gemini.json"),
        },
    ),
    "opencode": Agent(kept=(r"OPENCODE_\w+", r"\w+_API_KEY")),
    "qwen": Agent(kept=(r"QWEN_\w+", r"OPENAI_\w+", r"DASHSCOPE_\w+")),
    "hermes": Agent(kept=(r"HERMES_\w+", r"\w+_API_KEY")),
}


def known(argv: Sequence[str]) -> Agent:
    """What is known of a program by the name of its file."""
    return KNOWN.get(Path(argv[0]).name, Agent())


def environment(agent: Agent, environ: Mapping[str, str]) -> dict[str, str]:
    """Its variables: those of ours that it keeps, over what quiets it."""
    kept = {name: value for name, value in environ.items() if any(re.fullmatch(p, name) for p in agent.kept)}
    return {**agent.quiet, "NO_COLOR": "1", **kept}


def mode(offered: Sequence[str], *, mutable: bool) -> str | None:
    """The session mode for the work; None where the agent offers none that is known."""
    return next((each for each in (WRITES if mutable else READ_ONLY) if each in offered), None)
