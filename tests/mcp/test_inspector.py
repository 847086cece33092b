"""The server met by a client that is not ours, in another language: the protocol's own inspector (npm)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from custodes.mcp.tools import TOOLS

INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("npx") is None, reason="npx is not installed: it fetches the inspector"),
]


def inspect(project: Path, method: str, *words: str) -> Any:
    server = [sys.executable, "-m", "custodes.cli", "mcp", "-d", str(project)]
    ended = subprocess.run(
        ["npx", "--yes", INSPECTOR, "--cli", *server, "--method", method, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_the_inspector_lists_the_tools_and_calls_them(programs: Path) -> None:
    listed = inspect(programs, "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == [tool.name for tool in TOOLS]
    call = ("tools/call", "--tool-name")
    changed = inspect(
        programs, *call, "cos_supervision_config", "--tool-arg", "action=set", "--tool-arg", "max_parallel=5"
    )
    assert changed["structuredContent"]["policy"]["max_parallel"] == 5
    done = inspect(
        programs,
        *call,
        "cos_dispatch",
        *("--tool-arg", "role=reviewer"),
        *("--tool-arg", "prompt=What is here?"),
    )
    assert done["structuredContent"]["evidence"]["summary"] == "reviewer saw a.txt"
    work = json.dumps([{"role": "reviewer", "prompt": "x", "model": "limit"}])
    fan = inspect(programs, *call, "cos_fan_out", "--tool-arg", f"children={work}")
    assert fan["structuredContent"]["outcomes"][0]["failure"]["retry_after_s"] == 60
    wrong = inspect(programs, *call, "cos_dispatch", "--tool-arg", "role=reviwer", "--tool-arg", "prompt=x")
    assert wrong["isError"] is True
    assert "did you mean 'reviewer'?" in wrong["structuredContent"]["error"]["message"]
