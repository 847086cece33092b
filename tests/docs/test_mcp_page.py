"""The page on the MCP server says what is so: its tools, its calls, and configuration that parses."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from custodes.mcp import calls
from custodes.mcp.tools import TOOLS
from custodes.policy.arguments import read

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_every_tool_is_in_the_table_and_no_other() -> None:
    assert re.findall(r"^\| `(cos_\w+)` \|", PAGE, re.MULTILINE) == [tool.name for tool in TOOLS]


def test_every_configuration_starts_the_server() -> None:
    documents: list[Any] = [json.loads(block) for block in blocks("json")]
    servers = [document["mcpServers"] for document in documents if "mcpServers" in document]
    (codex,) = (tomllib.loads(block)["mcp_servers"] for block in blocks("toml"))
    assert len(servers) == 2
    for configured in (*servers, codex):
        assert (configured["custodes"]["command"], configured["custodes"]["args"]) == ("cos", ["mcp"])


def test_every_call_of_the_page_is_one_that_the_tools_take() -> None:
    documents: list[Any] = [json.loads(block) for block in blocks("json")]
    (change,) = (document for document in documents if "action" in document)
    (fan_out,) = (document for document in documents if "children" in document)
    assert read(calls.ConfigCall, change).changes
    assert len(read(calls.FanOutCall, fan_out).children) == 2
