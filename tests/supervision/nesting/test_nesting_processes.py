"""Nested work of real processes: a child's own `cos`, and its own `cos mcp`; and their deaths."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from custodes.supervision.nesting.nested_work import VARIABLES
from support.mcp_server import connected, document
from support.writers import EVIDENCE, Host, eventually, hosts, project_of

COS = f"""\
import json, pathlib, subprocess, sys
words = sys.stdin.read().split()
level = int(words[1])
if level == 0:
    print('{EVIDENCE}')
else:
    pathlib.Path("src").mkdir(exist_ok=True)
    inner = subprocess.run(
        [sys.executable, "-m", "custodes.cli", "dispatch", "--role", "implementer", "--on", "command",
         "--model", "cos", "--scope", "src", "--format", "json", f"x {{level - 1}}"],
        cwd="src", stdout=subprocess.PIPE,
    )
    (child,) = json.loads(inner.stdout)["outcomes"]
    below = child["evidence"]["summary"] if child["evidence"] else child["refusal"]["reason"]
    print(json.dumps({{"summary": f"{{level}} {{child['status']}} ({{below}})"}}))
"""
"""Has its own `cos` do the same one level less, from a subfolder."""

HOLDER = f"""\
import json, os, pathlib, sys, time
sys.stdin.read()
pathlib.Path("variables").write_text(json.dumps(dict(os.environ)))
while not pathlib.Path("release").exists():
    time.sleep(0.01)
print('{EVIDENCE}')
"""
"""Writes its variables down, and ends once there is a file ``release``."""

IMPATIENT = f"""\
import pathlib, subprocess, sys, time
sys.stdin.read()
inner = subprocess.Popen(
    [sys.executable, "-m", "custodes.cli", "dispatch", "--role", "reviewer", "--on", "command", "--model",
     "writer", "writer9"], stdout=subprocess.DEVNULL,
)
while not pathlib.Path("writer9.on").exists():
    time.sleep(0.01)
inner.kill()
inner.wait()
while not pathlib.Path("release").exists():
    time.sleep(0.01)
print('{EVIDENCE}')
"""
"""Kills its own `cos` once what that asked for is at work."""


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """The loop of the owner."""
    loop: str = request.param
    return loop


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_of(tmp_path, cos=COS, holder=HOLDER, impatient=IMPATIENT)


@pytest.fixture
def holder(project: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose child is at work; this process carries that child's variables, as a tool of it would."""
    with hosts(project, backend) as start:
        host = start("holder", "src")
        eventually("the child is at work", (project / "variables").exists)
        eventually("it wrote them all", lambda: (project / "variables").read_text().endswith("}"))
        variables = json.loads((project / "variables").read_text())
        for name in VARIABLES:
            monkeypatch.setenv(name, variables[name])
        yield host


def rows(project: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(project / ".coding-os" / "custodes.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM attempts ORDER BY started, number")]


def test_f6_f7_a_childs_own_cos_joins_its_parents_tree_down_to_the_depth_that_is_allowed(
    project: Path, backend: str
) -> None:
    settings = project / ".coding-os" / "hub-settings.json"
    settings.write_text('{"model_routing": {"enabled": true, "max_parallel": 1}}')
    with hosts(project, backend) as start:
        outcome = start("cos", "src", prompt="x 3").outcome()
    assert outcome["status"] == "done"
    assert outcome["evidence"]["summary"].startswith("3 done (2 done (1 refused (children nest 3 levels deep")
    outer, middle, inner, refused = rows(project)
    assert outer["parent_run"] is None
    assert middle["parent_run"] == outer["run_id"]
    assert inner["parent_run"] == middle["run_id"]
    assert (refused["parent_run"], refused["status"]) == (inner["run_id"], "refused")
    assert {row["conversation"] for row in rows(project)} == {outer["conversation"]}
    assert {row["owner"] for row in rows(project)} == {outer["owner"]}


@pytest.mark.parametrize(
    ("role", "status", "category"), [("reviewer", "refused", "unavailable"), ("implementer", "unknown", "")]
)
def test_f18_a_childs_own_mcp_server_starts_a_child_and_the_owner_is_killed_while_it_waits(
    project: Path, backend: str, holder: Host, role: str, status: str, category: str
) -> None:
    async def ask() -> tuple[Any, Any]:
        answers: list[Any] = []
        async with connected(project, backend) as client:

            async def dispatch() -> None:
                answers.append(
                    await document(
                        client,
                        "cos_dispatch",
                        role=role,
                        prompt="writer1",
                        adapter="command",
                        model="writer",
                        scope=["src/a"],
                    )
                )

            async with anyio.create_task_group() as group:
                group.start_soon(dispatch)
                await anyio.to_thread.run_sync(
                    eventually, "the nested child is at work", (project / "writer1.on").exists
                )
                outer, inner = rows(project)
                assert inner["parent_run"] == outer["run_id"]
                assert inner["conversation"] == outer["conversation"] == "holder"
                assert inner["owner"] == outer["owner"]
                os.kill(holder.process.pid, signal.SIGKILL)
            await dispatch()
        return answers[0], answers[1]

    first, second = anyio.run(ask, backend=backend)
    assert first["status"] == status
    if category:
        assert first["refusal"]["category"] == category
    said = first["refusal"] or first["failure"]
    assert f"(pid {holder.process.pid}) died" in said["reason"]
    assert (second["status"], second["refusal"]["category"]) == ("refused", "unavailable")
    assert len(rows(project)) == 2


@pytest.mark.parametrize("backend", ["trio"])
def test_a_client_that_dies_has_what_it_asked_for_ended(project: Path, backend: str) -> None:
    with hosts(project, backend) as start:
        host = start("impatient")
        eventually(
            "the nested child is cancelled",
            lambda: (
                [row["status"] for row in rows(project)] == ["running", "cancelled"]
                if (project / "writer9.on").exists()
                else False
            ),
        )
        (project / "release").touch()
        assert host.outcome()["status"] == "done"
    assert [row["status"] for row in rows(project)] == ["done", "cancelled"]


@pytest.mark.parametrize("backend", ["trio"])
def test_a_stale_variable_is_named_once_the_run_has_ended(project: Path, backend: str, holder: Host) -> None:
    (project / "release").touch()
    assert holder.outcome()["status"] == "done"
    answer = anyio.run(cos, project, "dispatch", "--role", "reviewer", "--format", "json", "look")
    (child,) = answer["outcomes"]
    assert child["refusal"]["category"] == "unavailable"
    assert "unset CUSTODES_RUN" in child["refusal"]["reason"]
    assert len(rows(project)) == 1


@pytest.mark.parametrize("backend", ["trio"])
def test_a_child_starts_nothing_in_another_project(
    project: Path, backend: str, holder: Host, tmp_path: Path
) -> None:
    other = project_of(tmp_path / "other")
    answer = anyio.run(cos, other, "dispatch", "--role", "reviewer", "--format", "json", "look")
    (child,) = answer["outcomes"]
    assert child["refusal"]["category"] == "invalid"
    assert str(project) in child["refusal"]["reason"]
    assert not (other / ".coding-os" / "custodes.db").exists()
    (project / "release").touch()
    assert holder.outcome()["status"] == "done"


async def cos(project: Path, *words: str) -> Any:
    ended = await anyio.run_process(
        [sys.executable, "-m", "custodes.cli", *words], cwd=project, check=False, stderr=None
    )
    return json.loads(ended.stdout)
