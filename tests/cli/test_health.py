"""`cos health` and `cos doctor`, on pools that real work has limited."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

import custodes
from custodes.adapters.port import Failure
from custodes.supervision.work import Work
from support import scripted
from support.cos import Cos


@pytest.fixture
def limited(project: Path) -> Path:
    """``one:large`` reported a limit of 600 s; ``two`` is not logged in."""
    script = scripted.install(project, "one", "two")
    script.acts.append(scripted.limit(retry_after_s=600))
    script.acts.append(scripted.fail(Failure(category="auth", outcome="known_failed", reason="401")))

    async def work() -> None:
        async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
            await parent.dispatch(Work(role="reviewer", prompt="x"))
            await parent.dispatch(Work(role="reviewer", prompt="x", adapter="two"))

    anyio.run(work)
    return project


def test_a_project_without_a_database_has_nothing_limited_and_gets_none(cos: Cos, project: Path) -> None:
    answer = cos("health", "show", "--format", "json")
    assert answer.code == 0
    assert answer.document == {"adapters": [], "pools": []}
    assert not (project / ".coding-os").exists()


def test_show_names_the_pool_its_wait_and_the_adapter_that_waits_for_a_person(
    cos: Cos, limited: Path
) -> None:
    document = cos("health", "show", "--format", "json").document
    (pool,) = [pool for pool in document["pools"] if pool["state"] != "healthy"]
    assert (pool["pool"], pool["state"], pool["failure_count"]) == ("one:large", "cooling_down", 1)
    assert 500 < pool["recovery_s"] <= 600
    one, two = document["adapters"]
    assert one["limited"] == ["one:large"]
    assert two["unavailable"]["category"] == "auth"
    text = cos("health", "show").out
    assert "one:large" in text
    assert "recovers in" in text
    assert "two  unavailable: adapter 'two' failed with auth" in text
    assert "two  healthy" not in text


def test_clear_takes_one_pool_and_is_written_down(cos: Cos, limited: Path) -> None:
    assert cos("health", "clear", "one:large").code == 0
    assert cos("health", "show", "--format", "json").document["adapters"][0]["state"] == "healthy"
    (line,) = (limited / ".coding-os" / "extensions-audit.log").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["by"], entry["action"], entry["target"]) == ("cli", "health.clear", "one:large")


def test_clear_of_an_adapter_takes_its_unavailability_too(cos: Cos, limited: Path) -> None:
    assert cos("health", "clear", "two").code == 0
    assert cos("health", "show", "--format", "json").document["adapters"][1]["unavailable"] is None


def test_clearing_what_is_not_limited_says_so(cos: Cos, limited: Path) -> None:
    answer = cos("health", "clear", "nothing")
    assert answer.code == 1
    assert "nothing of 'nothing' was limited" in answer.out


def test_enabling_clears_no_cooldown(cos: Cos, limited: Path) -> None:
    assert cos("supervision", "disable").code == cos("supervision", "enable").code == 0
    document = cos("health", "show", "--format", "json").document
    assert document["adapters"][0]["state"] == "cooling_down"


def test_watch_shows_it_again_until_it_is_ended(limited: Path) -> None:
    watching = subprocess.Popen(
        [sys.executable, "-m", "custodes.cli", "health", "show", "--watch"],
        cwd=limited,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        seen = [line for line in (watching.stdout.readline() for _ in range(12)) if "recovers in" in line]
        assert len(seen) >= 2
        assert seen[0] != seen[-1]
    finally:
        watching.kill()
        watching.communicate()


def test_watch_and_json_do_not_go_together(cos: Cos, project: Path) -> None:
    assert cos("health", "show", "--watch", "--format", "json").code == 2


def test_doctor_finds_nothing_wrong_with_a_sound_project_and_notes_who_waits_for_a_person(
    cos: Cos, limited: Path
) -> None:
    answer = cos("doctor")
    assert (answer.code, answer.err) == (0, "")
    note, verdict = answer.out.splitlines()
    assert note.startswith("note: adapter 'two' failed with auth; it is not asked again until its login")
    assert "nothing is wrong" in verdict
    (limited / ".coding-os.yaml").write_text("agents: [two]\n")
    cos("health", "clear", "one")
    assert cos("doctor").code == 1


def test_doctor_names_each_row_that_cannot_be_read(cos: Cos, limited: Path) -> None:
    with closing(sqlite3.connect(limited / ".coding-os" / "custodes.db")) as connection, connection:
        ((pool,),) = connection.execute("SELECT name FROM pools").fetchall()
        connection.execute("UPDATE pools SET deadline = '[torn'")
    answer = cos("doctor", "--format", "json")
    assert answer.code == 1
    (finding,) = answer.document["findings"]
    assert finding["about"] == "store"
    assert finding["problem"].startswith(f"row '{pool}' of pools cannot be read (")


def test_doctor_names_a_damaged_database_and_leaves_it(cos: Cos, limited: Path) -> None:
    database = limited / ".coding-os" / "custodes.db"
    damaged = b"not a database" + database.read_bytes()[14:]
    database.write_bytes(damaged)
    answer = cos("doctor", "--format", "json")
    assert answer.code == 1
    assert [finding["about"] for finding in answer.document["findings"]] == ["store"]
    assert database.read_bytes() == damaged


def test_doctor_names_malformed_settings(cos: Cos, limited: Path) -> None:
    (limited / ".coding-os" / "hub-settings.json").write_text("{")
    answer = cos("doctor", "--format", "json")
    assert answer.code == 1
    assert answer.document["findings"][0]["about"] == "settings"


@pytest.mark.parametrize("text", ["", "agent: [one]\n", None])
def test_doctor_says_where_no_agent_is_named_which_is_wrong_once_work_is_supervised(
    cos: Cos, project: Path, text: str | None
) -> None:
    if text is not None:
        (project / ".coding-os.yaml").write_text(text)
    answer = cos("doctor")
    assert answer.code == 0
    assert answer.out.startswith("note: no agent is named under `agents` in .coding-os.yaml")
    cos("supervision", "enable")
    answer = cos("doctor")
    assert (answer.code, answer.out.count("\n")) == (1, 1)
    assert answer.out.startswith("adapters: no agent is named under `agents`")


def test_doctor_only_notes_an_agent_that_is_not_ready_while_another_is(
    cos: Cos, limited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    agents = limited / ".coding-os.yaml"
    agents.write_text(agents.read_text().replace("agents: [", "agents: [claude, "))
    answer = cos("doctor", "--format", "json")
    assert answer.code == 0
    assert {(finding["note"], finding["about"]) for finding in answer.document["findings"]} == {
        (True, "adapters")
    }
    assert "claude is not ready" in answer.out


@pytest.mark.parametrize(
    ("script", "other"), [("from other import main", True), ("import custodes.cli", False)]
)
def test_doctor_says_where_cos_is_another_program(
    cos: Cos, limited: Path, monkeypatch: pytest.MonkeyPatch, script: str, other: bool
) -> None:
    program = limited / "bin" / "cos"
    program.parent.mkdir()
    program.write_text(f"#!/usr/bin/env python3\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    answer = cos("doctor")
    assert answer.code == 0
    assert (f"`cos` is {program}, which is another program's" in answer.out) is other
