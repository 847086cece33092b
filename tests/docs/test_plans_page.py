"""docs/plans.md: each of its blocks runs as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from custodes.adapters.registry import Registry
from custodes.cli.app import call
from custodes.supervision.plans.plan import load_plan

PAGE = (Path(__file__).parents[2] / "docs" / "plans.md").read_text(encoding="utf-8")
PROGRAM = """\
import os, sys
prompt = sys.stdin.read()
if "Fix the worst" in prompt:
    sys.exit(0)  # it says nothing: nobody knows whether it was done
print('{"summary": "%s"}' % os.environ["CUSTODES_ROLE"])
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "adapter.yaml").write_text(
        f"models: [{{id: it, argv: [{sys.executable}, {folder / 'program.py'}]}}]\n"
    )
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    (project / "src").mkdir()
    Registry.discover(project).trust("command")
    monkeypatch.chdir(project)
    return project


def test_every_plan_of_the_page_can_be_run(tmp_path: Path) -> None:
    plans = blocks("yaml")
    assert len(plans) == 3
    for number, text in enumerate(plans):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        load_plan(path)


def test_the_commands_bring_the_plan_past_what_nobody_knows(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "mend.yaml").write_text(blocks("yaml")[0])
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    codes, run = [], ""
    for line in commands:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line.replace("$RUN", run))]
        assert words[0] == "cos"
        codes.append(call(words[1:]))
        out = capsys.readouterr().out
        found = re.findall(r"^plan run: (\S+)$", out, re.MULTILINE)
        run = run or found[0]
    assert len(commands) == 5
    assert codes == [1, 0, 1, 0, 0]
    assert "mend done: 3 done" in out


def test_the_python_of_the_page_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(text, "docs/plans.md", "exec"), names)  # noqa: S102 - the page's own words
    anyio.run(names["main"])
    assert capsys.readouterr().out.splitlines() == [
        "find researcher None",
        "check reviewer None",
        "2 slices, 2 in this conversation",
    ]
