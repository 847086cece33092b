"""A plan whose host is killed with -9, or loses its power: what is kept, run again, and left to a person."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import custodes
from custodes.adapters.registry import Registry
from custodes.supervision.plans.plan import load_plan
from custodes.supervision.plans.plan_resume import resume_plan
from custodes.supervision.plans.plan_run import PlanEnd
from custodes.supervision.plans.plan_standing import PlanRunError
from custodes.supervision.plans.plan_view import PlanView
from custodes.supervision.plans.resolution import resolve_in_file
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.schema import DATABASE

# Each step appends its name to `ran`. One that finds a pipe of its name writes into it, which waits for the
# test, and then stays; one that is to keep the database as it stands copies it, to where the test looks.
STEP = """\
import json, pathlib, shutil, subprocess, sys
name = sys.stdin.read().split()[0]
with open("ran", "a") as ran:
    ran.write(name + "\\n")
if pathlib.Path("keep-" + name).is_dir():
    for file in ("custodes.db", "custodes.db-wal"):
        shutil.copy(".coding-os/" + file, "keep-" + name)
if pathlib.Path("hang-" + name).exists():
    tool = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open("hang-" + name, "w") as pipe:
        pipe.write(str(tool.pid))
    tool.wait()
print(json.dumps({"summary": name + " is done"}))
"""

HOST = """\
import sys
from pathlib import Path

import anyio

import custodes
from custodes.supervision.plans.plan import load_plan
from custodes.supervision.plans.plan_run import run_plan


async def main(project: Path) -> None:
    async with custodes.Supervision(project) as supervision, supervision.conversation("killed") as parent:
        await run_plan(parent, load_plan(project / "plan.yaml"), begun=lambda row: print(row.id, flush=True))


anyio.run(main, Path(sys.argv[1]), backend=sys.argv[2])
"""

SIX = """\
name: six
max_parallel: 4
steps:
  - {id: one, role: researcher, prompt: one}
  - {id: two, role: analyst, prompt: two, needs: [one]}
  - {id: three, role: implementer, prompt: three, needs: [two], scope: [a]}
  - {id: look, role: reviewer, prompt: look, needs: [three]}
  - {id: write, role: implementer, prompt: write, needs: [three], scope: [b]}
  - {id: last, role: reviewer, prompt: last, needs: [look, write]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (project / "step.py").write_text(STEP)
    models = [{"id": "step", "argv": [sys.executable, "step.py"]}]
    (folder / "adapter.yaml").write_text(json.dumps({"id": "command", "models": models}))
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    (project / "plan.yaml").write_text(SIX)
    Registry.discover(project).trust("command")
    return project


def ran(project: Path) -> list[str]:
    return (project / "ran").read_text().split()


async def resume(project: Path, run: str) -> PlanEnd:
    async with custodes.Supervision(project) as supervision, supervision.conversation("killed") as parent:
        return await resume_plan(parent, run, plan=load_plan(project / "plan.yaml"))


async def seen(project: Path, run: str) -> PlanView:
    async with RecordFile(project) as file:
        found = await file.plan(run)
    assert found is not None
    return found


def statuses(end: PlanEnd) -> dict[str, str]:
    return {outcome.name: outcome.status for outcome in end.outcomes}


def run_until_they_hang(project: Path, backend: str, *steps: str) -> tuple[str, list[int]]:
    """Run the plan in a process of its own, kill that with -9 once these steps are at work, and return the
    plan run's id and the pids of their tools."""
    for step in steps:
        os.mkfifo(project / f"hang-{step}")
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(project), backend], stdout=subprocess.PIPE, text=True
    )
    with host:
        try:
            assert host.stdout is not None
            run = host.stdout.readline().strip()
            pids = [int((project / f"hang-{step}").read_text()) for step in steps]
        finally:
            host.send_signal(signal.SIGKILL)
    for step in steps:
        (project / f"hang-{step}").unlink()
    return run, pids


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_done_steps_are_kept_a_read_only_one_runs_again_and_a_mutable_one_is_unknown(
    project: Path, backend: str
) -> None:
    run, pids = run_until_they_hang(project, backend, "look", "write")
    before = anyio.run(seen, project, run)
    assert (before.status, before.abandoned) == ("running", True)
    end = anyio.run(resume, project, run, backend=backend)
    assert statuses(end) == {
        "one": "done",
        "two": "done",
        "three": "done",
        "look": "done",
        "write": "unknown",
        "last": "refused",
    }
    assert sorted(ran(project)) == sorted(["one", "two", "three", "look", "write", "look"])
    assert end.uncertain == ("write",)
    assert [each.evidence.summary for each in end.bundle.slices] == [
        "one is done",
        "two is done",
        "three is done",
        "look is done",
    ]
    assert not any(Path(f"/proc/{pid}/stat").exists() and _runs(pid) for pid in pids)

    anyio.run(lambda: resolve_in_file(project, run, "done", "cli", step="write", evidence={"summary": "ok"}))
    end = anyio.run(resume, project, run, backend=backend)
    assert set(statuses(end).values()) == {"done"}
    assert ran(project).count("write") == 1
    assert ran(project)[-1] == "last"


BUDGETED = """\
max_parallel: 1
budget: {budget}
steps:
  - {{id: one, role: researcher, prompt: one, estimate_tokens: 60}}
  - {{id: two, role: analyst, prompt: two, needs: [one], estimate_tokens: 60}}
  - {{id: three, role: reviewer, prompt: three, needs: [two], estimate_tokens: 60}}
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("budget", "then", "limit", "spent"),
    [
        ("{tokens: 130}", ["one", "two"], "tokens", 120),
        ("{children: 2}", ["one", "two", "two"], "children", 2),
    ],
)
def test_what_was_at_work_when_its_host_died_counts_against_the_budget(
    project: Path, backend: str, budget: str, then: list[str], limit: str, spent: int
) -> None:
    """Tokens as they had been set aside for it; and a step that runs again is no second child."""
    (project / "plan.yaml").write_text(BUDGETED.format(budget=budget))
    run, _ = run_until_they_hang(project, backend, "two")
    end = anyio.run(resume, project, run, backend=backend)
    assert ran(project) == then
    assert getattr(end.spent, limit).spent == spent
    assert statuses(end)["three"] == "refused"


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_a_plan_that_somebody_runs_is_nobody_elses_to_go_on_with(project: Path) -> None:
    os.mkfifo(project / "hang-one")
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(project), "trio"], stdout=subprocess.PIPE, text=True
    )
    with host:
        try:
            assert host.stdout is not None
            run = host.stdout.readline().strip()
            (project / "hang-one").read_text()
            with pytest.raises(PlanRunError, match=rf"pid {host.pid} runs plan run {run}"):
                anyio.run(resume, project, run)
            with pytest.raises(PlanRunError, match=rf"pid {host.pid} runs plan run {run}"):
                anyio.run(lambda: resolve_in_file(project, run, "failed", "cli", step="one"))
        finally:
            host.send_signal(signal.SIGKILL)
    (project / "hang-one").unlink()
    assert statuses(anyio.run(resume, project, run))["last"] == "done"


RESUMER = """\
import sys
from pathlib import Path

import anyio

import custodes
from custodes.supervision.plans.plan_resume import resume_plan
from custodes.supervision.plans.plan_standing import PlanRunError


async def main(project: Path, run: str) -> None:
    async with custodes.Supervision(project) as supervision, supervision.conversation("killed") as parent:
        try:
            await resume_plan(parent, run, begun=lambda row: print("mine", flush=True))
        except PlanRunError as error:
            print(error, flush=True)


anyio.run(main, Path(sys.argv[1]), sys.argv[2])
"""


def test_of_two_processes_that_go_on_with_it_at_once_one_does(project: Path) -> None:
    run, _ = run_until_they_hang(project, "asyncio", "two")
    os.mkfifo(project / "hang-two")  # the winner stays at work until the other one has asked
    command = [sys.executable, "-c", RESUMER, str(project), run]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        (project / "hang-two").read_text()
        said = sorted(_line(racer) for racer in racers)
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert said[0] == "mine"
    assert f"runs plan run {run}; it can be gone on with once that has ended" in said[1]
    assert ran(project) == ["one", "two", "two"]


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# -- Power lost: the file as it surely stood on the disk at an instant, and an owner of another boot.

WRITES = """\
steps:
  - {id: before, role: researcher, prompt: before}
  - {id: write, role: implementer, prompt: write, needs: [before], scope: [a]}
  - {id: after, role: reviewer, prompt: after, needs: [write]}
"""


def lose_power(project: Path, kept: Path) -> None:
    """The machine comes up again with the file as it was kept, and nothing of that boot alive."""
    for file in (project / ".coding-os").glob("custodes.db*"):
        file.unlink()
    for file in kept.iterdir():
        shutil.copy(file, project / ".coding-os")
    owner = this_process()
    gone = json.dumps([owner.pid, owner.started, "another boot", owner.space])
    with sqlite3.connect(project / DATABASE) as database:
        database.execute("UPDATE plans SET owner = ? WHERE owner IS NOT NULL", (gone,))
        database.execute("UPDATE attempts SET owner = ? WHERE status = 'running'", (gone,))
        database.execute("UPDATE scope_leases SET owner = ?", (gone,))
    database.close()
    assert Owner(*json.loads(gone)) != owner


def run_to_its_end(project: Path, *keep: str) -> str:
    (project / "plan.yaml").write_text(WRITES)
    for step in keep:
        (project / f"keep-{step}").mkdir()
    command = [sys.executable, "-c", HOST, str(project), "asyncio"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def test_a_mutable_step_whose_end_was_lost_with_the_power_is_never_run_again(project: Path) -> None:
    run = run_to_its_end(project, "write")
    assert ran(project) == ["before", "write", "after"]
    lose_power(project, project / "keep-write")
    end = anyio.run(resume, project, run)
    assert statuses(end) == {"before": "done", "write": "unknown", "after": "refused"}
    assert ran(project) == ["before", "write", "after"]


def test_a_mutable_step_that_was_lost_before_it_began_runs_once(project: Path) -> None:
    """That it begins is on the disk before its runtime is called: so that had not been called."""
    run = run_to_its_end(project, "before")
    (project / "ran").write_text("before\n")  # what came after was lost with the power, like its rows
    lose_power(project, project / "keep-before")
    end = anyio.run(resume, project, run)
    assert set(statuses(end).values()) == {"done"}
    assert ran(project) == ["before", "before", "write", "after"]


@pytest.mark.parametrize(("lost", "status"), [("attempt", "unknown"), ("step", "done")])
def test_between_the_end_of_an_attempt_and_that_of_its_step_nothing_is_run_twice(
    project: Path, lost: str, status: str
) -> None:
    """The last commit, or the last two, of a mutable step are gone: its attempt's end, and its own."""
    run = run_to_its_end(project, "after")
    kept = project / "keep-after"
    with sqlite3.connect(kept / DATABASE.name) as database:
        database.execute("DELETE FROM plan_steps WHERE step = 'after'")
        database.execute(
            "UPDATE plan_steps SET status = 'running', outcome = NULL, ended = NULL WHERE step = 'write'"
        )
        if lost == "attempt":
            database.execute("UPDATE attempts SET status = 'running', ended = NULL WHERE name = 'write'")
    database.close()
    lose_power(project, kept)
    end = anyio.run(resume, project, run)
    assert statuses(end)["write"] == status
    assert ran(project).count("write") == 1
    told = [each.reason for each in end.bundle.degraded if each.name == "write"]
    assert told == [
        "it is done, but what it said of it is lost"
        if status == "done"
        else "provider: its host died while it was at work; it may have had an effect"
    ]
