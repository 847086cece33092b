"""The agents that the page names take its configuration as it stands, and reach the server by it.

Each is the real program, where it is installed (`scripts/runtimes install NAME`), with a home of its own. No
model is asked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}:{ROOT / '.runtimes' / 'bin'}:{os.environ['PATH']}"
PAGE = (ROOT / "docs" / "mcp.md").read_text()


def configuration(of: str, language: str) -> str:
    """The block of the page's section on one agent."""
    section = PAGE.partition(f"### {of}\n")[2].partition("\n### ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def home(project: Path, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of an agent that starts for the first time."""
    folder = tmp_path / "home"
    folder.mkdir()
    return {"HOME": str(folder), "PATH": PATH, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def agent(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed: scripts/runtimes install {name}")
    return found


def run(command: list[str], project: Path, environment: dict[str, str]) -> str:
    ended = subprocess.run(
        command,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ended.stdout + ended.stderr


def test_claude_code_connects(project: Path, home: dict[str, str]) -> None:
    claude = agent("claude")
    (server,) = json.loads(configuration("Claude Code", "json"))["mcpServers"].values()
    run([claude, "mcp", "add-json", "custodes", json.dumps(server)], project, home)
    assert re.search(r"custodes: cos mcp - .*Connected", run([claude, "mcp", "list"], project, home))


def test_gemini_cli_connects(project: Path, home: dict[str, str]) -> None:
    gemini = agent("gemini")
    (project / ".gemini").mkdir()
    (project / ".gemini" / "settings.json").write_text(configuration("Gemini CLI", "json"))
    said = run([gemini, "mcp", "list"], project, {**home, "GEMINI_CLI_TRUST_WORKSPACE": "true"})
    assert re.search(r"custodes: cos mcp \(stdio\) - Connected", said)


def test_codex_connects_and_lists_the_tools(project: Path, home: dict[str, str]) -> None:
    codex = agent("codex")
    settings = Path(home["HOME"]) / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(configuration("Codex", "toml"))
    server = subprocess.Popen(
        [codex, "app-server"],
        cwd=project,
        env=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            for message in (
                {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}},
                {"method": "initialized"},
                {"id": 2, "method": "mcpServerStatus/list", "params": {}},
            ):
                print(json.dumps(message), file=server.stdin, flush=True)
            answers = (json.loads(line) for line in server.stdout)
            (status,) = next(answer for answer in answers if answer.get("id") == 2)["result"]["data"]
        finally:
            server.terminate()
    assert status["serverInfo"]["name"] == "custodes"
    assert len(status["tools"]) == 6
