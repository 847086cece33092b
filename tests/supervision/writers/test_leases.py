"""Acceptance F4, F11 and F12 through real dispatch: what a host does with the scopes of its own work."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest
from msgspec.structs import replace

import custodes
from custodes.adapters import keeper
from custodes.adapters.port import RUN_VARIABLE, DispatchRequest, DispatchResult, ProgressSink
from custodes.store import Database
from custodes.supervision.events import ChildWaiting, Event
from custodes.supervision.pools.admission import Refused
from custodes.supervision.pools.health import admit
from custodes.supervision.record import records
from custodes.supervision.record.clock import now
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.work import Outcome, Work
from custodes.supervision.writers.lease import ScopeLease
from custodes.supervision.writers.lease_table import load_leases, save_leases
from custodes.supervision.writers.scope_file import read_scopes
from custodes.supervision.writers.scopes import resolve
from support import scripted
from support.health import ask, world
from support.program import running
from support.works import implement
from support.writers import project_of

pytestmark = pytest.mark.anyio

DROP_RIGHTS = """
import os
class Weak(_keeper.Keeper):
    def start(self, fields):
        started = super().start(fields)
        os.setuid(65534)
        return started
_keeper.Keeper = Weak
"""
"""A keeper that may not signal what it started."""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    return scripted.install(tmp_path, "one")


class Gate:
    """An act that begins, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.may_end = anyio.Event()

    async def __call__(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        self.begun.set()
        await self.may_end.wait()
        return await scripted.answer(request, progress)


class Waits:
    """An observer of what a host's children wait for."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.reasons: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, ChildWaiting):
            self.reasons.append(event.reason)
            self.begun.set()


async def states(project: Path) -> list[str]:
    return [view.state for view in await read_scopes(project)]


async def test_read_only_work_takes_no_number_and_writes_no_lease(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        assert (await parent.dispatch(Work(role="reviewer", prompt="x"))).status == "done"
    database = sqlite3.connect(tmp_path / DATABASE)
    assert database.execute("SELECT last FROM fencing").fetchone() == (0,)
    database.close()


async def test_f11_two_hosts_take_turns_and_the_one_that_waits_keeps_no_slot(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    gate, waits = Gate(), Waits()
    script.acts.append(gate)
    outcomes: list[Outcome] = []

    async with (
        custodes.Supervision(tmp_path) as one,
        custodes.Supervision(tmp_path, observer=waits) as two,
        one.conversation("one") as first,
        two.conversation("two") as second,
        anyio.create_task_group() as group,
    ):

        async def work(parent: custodes.Conversation, *scope: str) -> None:
            outcomes.append(await parent.dispatch(implement(*scope)))

        group.start_soon(work, first, "src")
        await gate.begun.wait()
        group.start_soon(work, second, "src/a.py")
        with anyio.fail_after(20):
            await waits.begun.wait()
        assert await states(tmp_path) == ["held", "waiting"]
        assert (await second.dispatch(Work(role="reviewer", prompt="x"))).status == "done"
        assert (await second.dispatch(implement("docs"))).status == "done"
        assert outcomes == []
        gate.may_end.set()
    assert [outcome.status for outcome in outcomes] == ["done", "done"]
    assert waits.reasons == ["scope"]
    assert await states(tmp_path) == []


async def test_one_that_is_cancelled_while_it_waits_leaves_the_line_of_all_processes(
    tmp_path: Path, script: scripted.Script
) -> None:
    gate, waits = Gate(), Waits()
    script.acts.append(gate)
    async with (
        custodes.Supervision(tmp_path) as one,
        custodes.Supervision(tmp_path, observer=waits) as two,
        one.conversation("one") as first,
        two.conversation("two") as second,
        first.fan_out() as holding,
        second.fan_out() as waiting,
    ):
        holding.start(implement("src"))
        await gate.begun.wait()
        child = waiting.start(implement("src"))
        with anyio.fail_after(20):
            await waits.begun.wait()
        assert await states(tmp_path) == ["held", "waiting"]
        assert (await child.cancel()).status == "cancelled"
        assert await states(tmp_path) == ["held"]
        gate.may_end.set()
    assert len(script.requests) == 1


async def test_f12_evidence_is_refused_where_the_file_cannot_say_that_the_scope_was_still_ones_own(
    tmp_path: Path, script: scripted.Script
) -> None:
    locker: list[sqlite3.Connection] = []

    async def lock(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        locker.append(sqlite3.connect(tmp_path / DATABASE, isolation_level=None))
        locker[0].execute("BEGIN IMMEDIATE")
        return await scripted.answer(request, progress)

    script.acts.append(lock)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(implement("src"))
        locker[0].close()
        assert (outcome.status, outcome.evidence) == ("unknown", None)
        assert outcome.failure is not None
        assert "not proven" in outcome.failure.reason
        # The release was kept, and comes before anything else.
        assert (await parent.dispatch(implement("src"))).status == "done"
    assert await states(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start what it then may not signal")
async def test_f4_what_was_left_keeps_the_scope_held_by_name_until_it_is_proven_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(RUN_VARIABLE, raising=False)
    project = project_of(tmp_path)
    bootstrap = keeper.BOOTSTRAP
    weak = bootstrap.replace("; _keeper.main", f"\n{DROP_RIGHTS}\n_keeper.main")
    assert weak != bootstrap
    monkeypatch.setattr(keeper, "BOOTSTRAP", weak)
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        work = Work(role="implementer", prompt="writer1", model="writer", scope=("src",), timeout=1)
        outcome = await parent.dispatch(work)
        assert outcome.status == "unknown"
        assert outcome.failure is not None
        pid = int((project / "writer1.on").read_text())
        (view,) = await read_scopes(project)
        assert (view.state, view.run_id, view.left) == ("held", outcome.run_id, outcome.failure.left)
        assert f"pid {pid}" in view.left[0]
        assert psutil.pid_exists(pid)
        monkeypatch.setattr(keeper, "BOOTSTRAP", bootstrap)
        (project / "writer2.go").touch()
        second = Work(role="implementer", prompt="writer2", model="writer", scope=("src",))
        assert (await parent.dispatch(second)).status == "done"
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert await read_scopes(project) == ()


async def orphan(project: Path, run_id: str) -> None:
    """A lease whose owner is dead: this process's pid, as if it had been another's."""
    dead = replace(this_process(), started=this_process().started + 1)
    lease = ScopeLease(
        id="orphan",
        run_id=run_id,
        number=1,
        held=True,
        scope=resolve(project, ["src"]),
        owner=dead,
        since=0.0,
        beat=now(),
    )
    database = await Database.open(project / DATABASE, MIGRATIONS)
    try:
        await database.write(lambda connection: save_leases(connection, [lease]))
    finally:
        await database.aclose()


@contextmanager
def of_run(run_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that carries a run id."""
    with running(["sleep", "600"], env={**os.environ, RUN_VARIABLE: run_id}) as program:
        try:
            yield program
        finally:
            program.kill()


RECOVER = """\
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from custodes.store import Database
from custodes.supervision.record.clock import now
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.schema import DATABASE, MIGRATIONS


async def main() -> None:
    database = await Database.open(Path(sys.argv[1]), MIGRATIONS)
    await close_dead_owners(database, now())
    await database.aclose()


anyio.run(main)
"""


async def test_f12_a_dead_holders_scope_stays_held_while_a_process_of_its_run_lives(tmp_path: Path) -> None:
    """The one that recovers is itself of that run, and spares itself."""
    run = new_id()
    await orphan(tmp_path, run)
    recovering = await anyio.run_process(
        [sys.executable, "-c", RECOVER, str(tmp_path / DATABASE)], env={**os.environ, RUN_VARIABLE: run}
    )
    assert recovering.returncode == 0
    (view,) = await read_scopes(tmp_path)
    assert (view.state, view.owner) == ("held", "dead")
    assert view.left[0].startswith("pid ")
    database = await Database.open(tmp_path / DATABASE, MIGRATIONS)
    try:
        await close_dead_owners(database, now())
        assert await database.read(load_leases) == []
    finally:
        await database.aclose()


async def test_f12_a_dead_holders_scope_is_free_at_the_next_start(
    tmp_path: Path, script: scripted.Script
) -> None:
    run = new_id()
    await orphan(tmp_path, run)
    with of_run(run) as program:
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            assert program.poll() is None
            assert (await parent.dispatch(implement("src"))).status == "done"
        assert program.poll() is not None
    assert await states(tmp_path) == []


async def test_f12_nothing_is_admitted_once_its_scope_is_lost(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        answer = await admit(w.health, replace(ask("one:a", "two:b"), scope_lease="taken-away"))
        assert isinstance(answer, Refused)
        assert [each.adapter for each in answer.unavailable] == ["one", "two"]
        assert "released or taken over" in answer.unavailable[0].reason
        assert await w.database.read(records.running) == []
