"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = [
    "\n".join(line[4:] for line in block.splitlines())
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", README, re.MULTILINE)
]
LOOK = 'import os\nprint(\'{"summary": "seen as %s"}\' % os.environ["CUSTODES_ROLE"])\n'


def block(first: str) -> str:
    (found,) = [text for text in BLOCKS if text.strip().startswith(first)]
    return found.strip() + "\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose one runtime is the README's program."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    project = tmp_path / "project"
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "adapter.yaml").write_text(block("models:").replace("python3", sys.executable))
    (project / "tools").mkdir()
    (project / "tools" / "look.py").write_text(LOOK)
    (project / "src").mkdir()
    (project / "review.yaml").write_text(block("steps:"))
    run(project, "cos adapters trust command")
    return project


def run(project: Path, line: str) -> str:
    program, *words = shlex.split(line, comments=True)
    assert program == "cos"
    ran = subprocess.run(
        [sys.executable, "-m", "custodes.cli", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
    return ran.stdout


def test_the_five_minutes_and_the_plan(project: Path) -> None:
    for line in block("cos init").splitlines():
        out = run(project, line)
    assert "seen as reviewer" in out
    plan_run = ""
    for line in re.findall(r"`(cos run [^`]+|cos health show|cos doctor)`", README):
        out = run(project, line.replace("--resume RUN", f"--resume {plan_run}"))
        if found := re.findall(r"^plan run: (\S+)$", out, re.MULTILINE):
            plan_run = found[0]
        if "--resume" in line:  # all of it was done
            assert "plan done: 2 done" in out
        elif line.startswith("cos run"):
            assert "look: done: seen as reviewer" in out
            assert "fix: done: seen as implementer" in out


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_host(project: Path, loop: str) -> None:
    code = block("import asyncio")
    if loop == "trio":
        code = code.replace("import asyncio", "import trio").replace("asyncio.run(main())", "trio.run(main)")
    run(project, "cos init")
    run(project, "cos supervision enable")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split(" ", 2) for line in ran.stdout.splitlines()]
    assert [line[:2] for line in lines] == [
        ["reviewer", "done"],
        ["analyst", "done"],
        ["architect", "done"],
        ["110000", "90000"],  # the two roles' defaults, since the program reports no usage
    ]


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_the_stream_of_events(project: Path, loop: str) -> None:
    reader = block("async with parent.events")
    code = f"""
import anyio
from custodes import Supervision, Work

async def main():
    async with Supervision() as supervision, anyio.create_task_group() as group:
        async with supervision.conversation("mine") as parent:
            async def read():
{textwrap.indent(reader, " " * 16)}
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await parent.dispatch(Work(role="reviewer", prompt="What is here?"))

anyio.run(main, backend={loop!r})
"""
    run(project, "cos init")
    run(project, "cos supervision enable")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    first, *others = ran.stdout.splitlines()
    assert first.startswith("1 ChildQueued(")
    assert [int(line.split()[0]) for line in others] == list(range(2, len(others) + 2))
    assert "ChildEnded(" in others[-1]
