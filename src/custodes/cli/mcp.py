"""``cos mcp``: this project's supervision as tools, for the agent that starts it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from custodes.cli.options import Otlp, ProjectDir, SessionAdapter, project_at
from custodes.cli.output import DONE, SIGNALLED, CliError, complain
from custodes.extras import missing


async def mcp(*, adapter: SessionAdapter = "", otlp: Otlp = "", project_dir: ProjectDir = Path()) -> int:
    """Serve the same to an agent, as its MCP server on stdio.

    An agent starts it by its own configuration; docs/mcp.md has the lines for
    Claude Code, Codex and Gemini CLI. It ends with its client, and its children
    end with it.
    """
    project = project_at(project_dir)
    if importlib.util.find_spec("mcp") is None:
        raise CliError(missing("the MCP server needs", "mcp"), kind="missing")

    if sys.stdin is None or sys.stdout is None:
        raise CliError("an MCP server speaks over stdin and stdout, and one of them is closed", kind="files")
    if sys.stdin.isatty():
        complain("cos mcp: an agent starts this and speaks MCP to it; docs/mcp.md says how. Ctrl-C ends it.")

    from custodes.cli.exported import exported
    from custodes.mcp import serve

    with exported(otlp):
        signal = await serve(project, adapter=adapter)
    return DONE if signal is None else SIGNALLED + signal
