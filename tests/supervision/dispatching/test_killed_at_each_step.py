"""A host that is killed with -9 at each step of a dispatch, and what the next one makes of it.

Real hosts, real programs, one file. The ordinary run kills at every step once, each in another errand and on
the other loop; ``--full`` kills at every step in every errand on both loops. A kill within a fan-out strikes
at the second passing, while the first child is anywhere.
"""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

import custodes
from custodes import Outcome, Work
from custodes.store import Database
from custodes.supervision.events import AttemptStarted, Event
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.pools.pool_table import save_pools
from custodes.supervision.record.clock import after, now
from custodes.supervision.record.schema import MIGRATIONS
from support.doomed_host import run_doomed
from support.processes import marked
from support.steps import STEPS, Step
from support.writers import project_of

WORKER = """\
import os, subprocess, sys, time
prompt = sys.stdin.read().split()[0]
with open("effects", "a") as effects:
    effects.write(os.environ["CUSTODES_RUN"] + "\\n")
stubborn = ["sh", "-c", "trap '' TERM; sleep 600; true"]
tools = [subprocess.Popen(stubborn, start_new_session=True)] if prompt == "work" else []
print("at work", file=sys.stderr, flush=True)
while prompt == "hold" and not os.path.exists("go"):
    time.sleep(0.01)
for tool in tools:
    time.sleep(0.05)
    os.killpg(tool.pid, 9)
    tool.wait()
print('{"summary": "well"}')
"""
"""Says which run it is the effect of, and works with a tool in a session of its own that ignores TERM."""


class Errand(NamedTuple):
    """What the host is at when it is killed: its work, and whether the first of it is its pool's probe."""

    name: str
    works: tuple[Work, ...]
    probe: bool = False

    @property
    def mutable(self) -> bool:
        return any(work.role == "implementer" for work in self.works)


def read(prompt: str = "work") -> Work:
    return Work(role="reviewer", prompt=prompt, model="worker")


def write(*scope: str) -> Work:
    return Work(role="implementer", prompt="work", model="worker", scope=scope)


ERRANDS = (
    Errand("writing", (write("src"),)),
    Errand("writing probe", (write("src"),), probe=True),
    Errand("fan-out", (write("src"), write("src/a"), read(), write("docs"))),
    Errand("reading", (read(),)),
    Errand("reading probe", (read(),), probe=True),
)
LOOPS = ("asyncio", "trio")


def _cases() -> list[Any]:
    """Every step of every errand on both loops; those of the ordinary run without the mark."""
    cases = []
    for number, step in enumerate(STEPS):
        errands = [errand for errand in ERRANDS if errand.mutable or not step.mutable]
        for turn, errand in enumerate(errands):
            for loop in LOOPS:
                chosen = turn == number % len(errands) and loop == LOOPS[number % 2]
                cases.append(
                    pytest.param(
                        *(step, errand, loop),
                        id=f"{step.name}-{errand.name}-{loop}",
                        marks=() if chosen else pytest.mark.full,
                    )
                )
    return cases


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)
    return project_of(tmp_path, worker=WORKER)


@pytest.mark.parametrize(("step", "errand", "loop"), _cases())
def test_the_next_host_finds_everything_told_apart_and_runs_nothing_twice(
    project: Path, step: Step, errand: Errand, loop: str
) -> None:
    """Acceptance F5 and F12, and design section 8: kill -9 at every step of a dispatch."""
    if errand.probe:
        anyio.run(due_for_a_probe, project)
    kill(project, step, errand, loop)
    left = tables(project)
    single = len(errand.works) == 1
    if single:
        assert [row["status"] for row in left["attempts"]] == {
            "none": [],
            "open": ["running"],
            "closed": ["done"],
        }[step.row]
        assert [lease["held"] for lease in left["scope_leases"]] == [1] * (step.scope and errand.mutable)
        assert [row["probe"] for row in left["attempts"]] == [int(errand.probe)] * len(left["attempts"])
    begun = effects(project)

    heir = Heir(project)
    anyio.run(heir.inherit, backend=loop)

    assert [pid for run in begun for pid in marked(run)] == []
    runs = {row["run_id"]: row for row in heir.found["attempts"]}
    assert set(begun) <= set(runs), "a program ran that has no row"
    for before in left["attempts"]:
        then = runs[before["run_id"]]
        if before["status"] == "running":
            assert (then["status"], then["reason"]) == ("unknown", "its owner died")
            assert then["ended"] >= before["started"]
        else:
            assert then == before
    assert len(runs) == len(left["attempts"]) == len(heir.found["attempts"])
    assert heir.found["scope_leases"] == []
    assert all(pool["lease"] is None for pool in heir.found["pools"])

    due = errand.probe and step.row != "closed"
    assert heir.beside.status == ("refused" if due else "done")
    assert [event.probe for event in heir.started] == [due] + [False] * (1 if due else 2)
    assert heir.first.status == heir.writer.status == "done"
    assert heir.number > max([lease["number"] for lease in left["scope_leases"]], default=0)

    after_all = Counter(effects(project))
    assert {run: after_all[run] for run in begun} == Counter(begun), "work of the killed host ran again"
    assert max(after_all.values()) == 1
    assert anyio.run(start_alone, project, backend=loop) == tables(project) == heir.last


def test_every_step_is_killed_at_in_the_ordinary_run() -> None:
    chosen = [case.values[0] for case in _cases() if not case.marks]
    assert chosen == list(STEPS)
    assert {case.values[1].name for case in _cases() if not case.marks} == {each.name for each in ERRANDS}


def kill(project: Path, step: Step, errand: Errand, loop: str) -> None:
    passing = 1 if step.shared or len(errand.works) == 1 else 2
    code = run_doomed(project, errand.works, step, passing=passing, backend=loop)
    assert code == -signal.SIGKILL, f"'{step.name}' was never reached"


class Heir:
    """The next host: what it finds once it has started, and what it can do then."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.found: dict[str, list[dict[str, Any]]] = {}
        self.last: dict[str, list[dict[str, Any]]] = {}
        self.started: list[AttemptStarted] = []
        self.number = 0
        self.first: Outcome
        self.writer: Outcome
        self.beside: Outcome

    async def inherit(self) -> None:
        """Two ask for the pool at once; then one writes to the scope that the killed host had."""
        running = anyio.Event()

        def observe(event: Event) -> None:
            if isinstance(event, AttemptStarted):
                self.started.append(event)
                running.set()
                for lease in tables(self.project)["scope_leases"]:
                    self.number = lease["number"]

        async with custodes.Supervision(self.project, observer=observe) as supervision:
            await supervision.tree()
            self.found = tables(self.project)
            async with supervision.conversation("next") as parent:
                async with parent.fan_out() as fan:
                    fan.start(read("hold"))
                    await running.wait()
                    self.beside = await parent.dispatch(read("look"))
                    (self.project / "go").touch()
                (self.first,) = fan.outcomes
                self.writer = await parent.dispatch(write("src"))
        self.last = tables(self.project)


async def start_alone(project: Path) -> dict[str, list[dict[str, Any]]]:
    """One more host, which does nothing; what the file holds while it runs."""
    async with custodes.Supervision(project) as supervision:
        await supervision.tree()
        return tables(project)


async def due_for_a_probe(project: Path) -> None:
    """The worker's pool was at its limit, and its wait is over."""
    pool = Pool(
        name="command:worker", generation=1, failure_count=1, deadline=after(0, now()), reason="limit"
    )
    database = await Database.open(project / ".coding-os" / "custodes.db", MIGRATIONS)
    try:
        await database.write(lambda connection: save_pools(connection, [pool]))
    finally:
        await database.aclose()


def tables(project: Path) -> dict[str, list[dict[str, Any]]]:
    """All that the file holds; a file that is not whole raises."""
    names = ("attempts", "scope_leases", "pools", "unavailable", "fencing")
    path = project / ".coding-os" / "custodes.db"
    if not path.exists():
        return {name: [] for name in names}
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        return {name: [*map(dict, database.execute(f"SELECT * FROM {name}"))] for name in names}  # noqa: S608  # our own names


def effects(project: Path) -> list[str]:
    """The run id of each program that began."""
    file = project / "effects"
    return file.read_text().split() if file.exists() else []
