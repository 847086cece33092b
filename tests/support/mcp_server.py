"""Our MCP server as a real process, on the loop that is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

SERVE = """
import sys
from pathlib import Path

import anyio

from custodes.mcp import serve

anyio.run(serve, Path(sys.argv[1]), backend=sys.argv[2])
"""


def command(project: Path, loop: str) -> list[str]:
    return [sys.executable, "-c", SERVE, str(project), loop]


@asynccontextmanager
async def connected(project: Path, loop: str) -> AsyncIterator[Client]:
    """The SDK's own client, over the standard input and output of a server process."""
    program, *arguments = command(project, loop)
    started = StdioServerParameters(command=program, args=arguments, env=dict(os.environ), cwd=project)
    async with Client(started) as client:
        yield client


async def document(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured content of a call that must be no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def complaint(client: Client, tool: str, **arguments: Any) -> dict[str, str]:
    """The error of a call that must be one."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    error: dict[str, str] = result.structured_content["error"]
    return error
