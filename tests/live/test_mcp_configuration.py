"""What docs/mcp.md says to type into an agent writes what the page shows, by the agent's own program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from live.harness import INSTALLED
from support.pages import blocks, commands

pytestmark = pytest.mark.live

BLOCKS = blocks("docs/mcp.md")
WRITTEN = {
    "claude": "project/.mcp.json",
    "codex": "home/.codex/config.toml",
    "gemini": "project/.gemini/settings.json",
}


def shown(program: str, file: Path) -> tuple[dict[str, object], dict[str, object]]:
    """The server as the file has it, and as the first block after the program's command has it."""
    at = next(number for number, block in enumerate(BLOCKS) if block.text.startswith(f"{program} mcp add"))
    read, key = (tomllib.loads, "mcp_servers") if file.suffix == ".toml" else (json.loads, "mcpServers")
    return (
        read(file.read_text(encoding="utf-8"))[key]["custodes"],
        read(BLOCKS[at + 1].text)[key]["custodes"],
    )


@pytest.mark.parametrize("program", WRITTEN)
def test_the_command_writes_the_configuration_to_which_only_the_limits_are_added(
    program: str, tmp_path: Path
) -> None:
    path = f"{INSTALLED}:{os.environ['PATH']}"
    if shutil.which(program, path=path) is None:
        pytest.skip(f"{program} is not installed: scripts/runtimes install {program}")
    (block,) = (block for block in BLOCKS if block.text.startswith(f"{program} mcp add"))
    (command,) = commands(block.text, {})
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    subprocess.run(
        command.words,
        cwd=project,
        env={"HOME": str(home), "PATH": path},
        check=True,
        capture_output=True,
        timeout=120,
    )
    written, page = shown(program, tmp_path / WRITTEN[program])
    limits = {"timeout", "startup_timeout_sec", "tool_timeout_sec"}
    assert {key: page.get(key) for key in written} == written
    assert page.keys() - written.keys() <= limits
