"""`cos scopes` and what `cos doctor` says of them, on leases in a real file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from custodes.store import Connection, Database
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.writers.lease import ScopeLease
from custodes.supervision.writers.lease_table import save_last_number, save_leases
from custodes.supervision.writers.scope_file import read_scopes
from custodes.supervision.writers.scopes import resolve
from support.cos import Cos
from support.writers import eventually, project_of

DEAD = replace(this_process(), started=this_process().started + 1)


def lease(project: Path, number: int, run: str, *, owner: Owner, held: bool = True) -> ScopeLease:
    return ScopeLease(
        id=run,
        run_id=run,
        number=number,
        held=held,
        scope=resolve(project, ["src"]),
        owner=owner,
        since=now().wall,
        beat=now(),
    )


def store(project: Path, *leases: ScopeLease) -> None:
    async def write() -> None:
        database = await Database.open(project / DATABASE, MIGRATIONS)

        async def fold(connection: Connection) -> None:
            await save_leases(connection, leases)
            await save_last_number(connection, max(each.number for each in leases))

        try:
            await database.write(fold)
        finally:
            await database.aclose()

    anyio.run(write)


@pytest.fixture
def line(project: Path) -> Path:
    """``one`` holds ``src`` and lives; ``two`` waits for it."""
    alive = this_process()
    store(project, lease(project, 1, "one", owner=alive), lease(project, 2, "two", owner=alive, held=False))
    return project


def test_a_project_without_a_database_has_nothing_held_and_gets_none(cos: Cos, project: Path) -> None:
    assert cos("scopes", "list", "--format", "json").document == {"scopes": []}
    assert "nothing is held" in cos("scopes", "list").out
    assert cos("scopes", "release", "one").code == 1
    assert not (project / ".coding-os").exists()


def test_list_shows_who_holds_and_who_waits_in_order(cos: Cos, line: Path) -> None:
    one, two = cos("scopes", "list", "--format", "json").document["scopes"]
    assert (one["state"], one["run_id"], one["number"], one["owner"]) == ("held", "one", 1, "alive")
    assert one["places"] == [str(line.resolve() / "src")]
    assert (two["state"], two["run_id"]) == ("waiting", "two")
    text = cos("scopes", "list").out
    assert text.index("held") < text.index("waiting")


@pytest.mark.parametrize("target", ["one", "1"])
def test_release_says_what_it_overrides_and_is_written_down(cos: Cos, line: Path, target: str) -> None:
    answer = cos("scopes", "release", target)
    assert answer.code == 0
    assert "is alive and may still write there" in answer.out
    (left,) = cos("scopes", "list", "--format", "json").document["scopes"]
    assert left["run_id"] == "two"
    (written,) = (line / ".coding-os" / "extensions-audit.log").read_text().splitlines()
    entry = json.loads(written)
    assert (entry["by"], entry["action"], entry["target"]) == ("cli", "scopes.release", target)
    assert "alive" in entry["detail"][0]


def test_a_place_in_the_line_is_nothing_to_release(cos: Cos, line: Path) -> None:
    answer = cos("scopes", "release", "two")
    assert answer.code == 1
    assert "nothing is held by 'two'" in answer.out
    assert len(cos("scopes", "list", "--format", "json").document["scopes"]) == 2


def test_doctor_is_silent_about_a_holder_that_lives(cos: Cos, line: Path) -> None:
    findings = cos("doctor", "--format", "json").document["findings"]
    assert [finding for finding in findings if finding["about"] == "scopes"] == []


def test_doctor_names_a_lease_whose_holder_is_dead_and_what_was_left(cos: Cos, project: Path) -> None:
    dead = replace(lease(project, 7, "one", owner=DEAD), left=("sleep (pid 12)",))
    store(project, dead)
    answer = cos("doctor", "--format", "json")
    assert answer.code == 1
    (finding,) = [each for each in answer.document["findings"] if each["about"] == "scopes"]
    for said in ("held by run one", "is dead", "sleep (pid 12)", "cos scopes release 7"):
        assert said in finding["problem"]


def test_an_owner_in_another_pid_namespace_is_out_of_sight_and_not_called_dead(
    cos: Cos, project: Path
) -> None:
    store(project, lease(project, 1, "one", owner=replace(DEAD, space="pid:[1]")))
    (view,) = cos("scopes", "list", "--format", "json").document["scopes"]
    assert view["owner"] == "out of sight"
    assert "out of sight" in cos("scopes", "list").out


def test_f11_two_runs_of_the_program_on_one_project_take_turns_on_a_scope_and_the_second_outlives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)
    project = project_of(tmp_path)
    runs: list[subprocess.Popen[str]] = []
    try:
        for name in ("writer1", "writer2"):
            (project / f"{name}.yaml").write_text(
                f"steps:\n  - {{id: s, role: implementer, prompt: {name}, model: writer, scope: [src]}}\n"
            )
            run = subprocess.Popen(
                [sys.executable, "-m", "custodes.cli", "run", f"{name}.yaml", "--format", "json"],
                cwd=project,
                stdout=subprocess.PIPE,
                text=True,
            )
            runs.append(run)
            eventually("it is in the line", lambda: len(anyio.run(read_scopes, project)) == len(runs))
            eventually("the first writes", lambda: (project / "writer1.on").exists())
        held, waiting = anyio.run(read_scopes, project)
        assert (held.state, held.pid, waiting.state) == ("held", runs[0].pid, "waiting")
        assert not (project / "writer2.on").exists()
        runs[0].kill()
        eventually("the second writes", lambda: (project / "writer2.on").exists())
        (then,) = anyio.run(read_scopes, project)
        assert (then.state, then.pid) == ("held", runs[1].pid)
        assert then.number > held.number
        (project / "writer2.go").touch()
        out, _ = runs[1].communicate(timeout=60)
        assert json.loads(out)["status"] == "done"
    finally:
        for run in runs:
            run.kill()
            run.communicate()
