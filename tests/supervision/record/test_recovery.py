"""What a dead owner leaves behind, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from msgspec.structs import replace

from custodes.adapters.port import RUN_VARIABLE
from custodes.store import Database
from custodes.supervision.pools.breaker import Lease, Pool
from custodes.supervision.pools.pool_table import load_pools, save_pools
from custodes.supervision.record import records
from custodes.supervision.record.clock import after, now
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import Owner, start_of, this_process
from custodes.supervision.record.records import LEAST_KEPT, RETENTION_S, AttemptRow
from custodes.supervision.record.recovery import (
    Survivor,
    _signal,
    close_dead_owners,
    end_survivors,
    survivors,
)
from support.health import world
from support.program import running

DEAD = replace(this_process(), started=this_process().started + 1)
"""This process's pid, as if it had been another's: a recycled pid."""


def row(run_id: str, owner: Owner, **fields: Any) -> AttemptRow:
    return AttemptRow(run_id=run_id, number=1, conversation="c1", role="implementer", owner=owner, **fields)


@contextmanager
def marked(run_id: str, code: str = "import time; print('on', flush=True); time.sleep(600)") -> Iterator[int]:
    """A process that carries a run id, as everything below an attempt does."""
    with running(
        [sys.executable, "-c", code], env={**os.environ, RUN_VARIABLE: run_id}, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        try:
            yield process.pid
        finally:
            process.kill()


async def insert(database: Database, *rows: AttemptRow) -> None:
    await database.write(lambda connection: records.insert(connection, rows))


@pytest.mark.anyio
async def test_only_the_rows_of_a_proven_dead_owner_are_closed(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        elsewhere = replace(DEAD, space="pid:[1]")
        await insert(w.database, row("dead", DEAD), row("alive", this_process()), row("elsewhere", elsewhere))
        (recovered,) = await close_dead_owners(w.database, now())
        assert recovered.row.run_id == "dead"
        assert (recovered.row.status, recovered.row.reason) == ("unknown", "its owner died")
        still = await w.database.read(records.running)
        assert sorted(each.run_id for each in still) == ["alive", "elsewhere"]
        assert await close_dead_owners(w.database, now()) == []


@pytest.mark.anyio
async def test_a_dead_probes_lease_is_freed_and_its_pool_stays_due(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        probe = row("dead", DEAD, pool="one:a", generation=1, probe=True)
        other = Lease("another's", this_process(), after(600, now()))
        sick = Pool(name="one:a", generation=1, failure_count=2, deadline=after(0, now()))
        await w.database.write(
            lambda connection: save_pools(
                connection,
                [
                    replace(sick, lease=Lease(probe.id, DEAD, after(600, now()))),
                    replace(sick, name="two:b", lease=other),
                ],
            )
        )
        await insert(w.database, probe, row("dead", DEAD, pool="two:b", generation=1))
        await close_dead_owners(w.database, now())
        pools = await w.database.read(load_pools)
        assert (pools["one:a"].lease, pools["one:a"].failure_count) == (None, 2)
        assert pools["one:a"].state(now()) == "half_open"
        assert pools["two:b"].lease == other


@pytest.mark.anyio
async def test_surviving_processes_of_a_dead_run_are_ended_and_no_others(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); "
        "time.sleep(600)"
    )
    dead, living = new_id(), new_id()  # other tests look for marked processes at the same time
    with marked(dead) as one, marked(dead, stubborn) as two, marked(living) as other:
        async with world(tmp_path) as w:
            await insert(w.database, row(dead, DEAD), row(living, this_process()))
            (recovered,) = await close_dead_owners(w.database, now())
        assert sorted(recovered.ended) == sorted([one, two])
        assert recovered.left == ()
        assert start_of(one) is None
        assert start_of(two) is None
        assert start_of(other) is not None


def test_a_recycled_pid_is_never_signalled() -> None:
    with marked("some-run") as pid:
        started = start_of(pid)
        assert started is not None
        _signal(Survivor(pid, started - 1, "some-run"), signal.SIGKILL)
        assert start_of(pid) == started
        _signal(Survivor(pid, started, "some-run"), signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert start_of(pid) is None


def test_what_started_this_process_is_spared_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that a dead run had started may be the one that recovers."""
    run = new_id()
    code = (
        "from custodes.supervision.record.recovery import end_survivors\n"
        "import os, sys\n"
        f"ended, left = end_survivors({{{run!r}}})\n"
        "sys.exit(0 if [each.pid for each in left] == [os.getpid()] and not ended else 1)"
    )
    asked = subprocess.run([sys.executable, "-c", code], env={**os.environ, RUN_VARIABLE: run}, check=False)
    assert asked.returncode == 0


@pytest.mark.anyio
async def test_nothing_is_looked_for_where_nothing_was_left(tmp_path: Path) -> None:
    run = new_id()
    with marked(run) as pid:
        async with world(tmp_path) as w:
            assert await close_dead_owners(w.database, now()) == []
        assert start_of(pid) is not None
        found = await anyio.to_thread.run_sync(lambda: list(survivors({run})))
        assert [each.pid for each in found] == [pid]
        ended, left = await anyio.to_thread.run_sync(end_survivors, {"no-such-run"})
        assert (ended, left) == ([], [])


@pytest.mark.anyio
async def test_old_rows_go_and_an_unresolved_mutable_one_stays(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        old, young = now().wall - RETENTION_S - 1, now().wall - 60
        await insert(
            w.database,
            row("old", this_process(), status="done", ended=old),
            row("old-unknown", this_process(), status="unknown", ended=old, mutable=True),
            row("old-reader", this_process(), status="unknown", ended=old, mutable=False),
            row("young", this_process(), status="done", ended=young),
            row("open", this_process()),
            *(row("many", this_process(), status="done", ended=young) for _ in range(LEAST_KEPT)),
        )
        await close_dead_owners(w.database, now())
        kept = await w.database.read(lambda connection: records.latest_runs(connection, 10))
        assert sorted(each.run_id for each in kept) == [
            *["many"] * LEAST_KEPT,
            "old-unknown",
            "open",
            "young",
        ]


@pytest.mark.anyio
async def test_a_clock_that_ran_ahead_deletes_nothing_of_what_is_newest(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        at = now()
        await insert(w.database, row("done", this_process(), status="done", ended=at.wall))
        for _ in range(2):  # what it writes meanwhile is dated ahead, too
            at = replace(at, wall=at.wall + 2 * RETENTION_S)
            await close_dead_owners(w.database, at)
            await insert(w.database, row("ahead", this_process(), status="done", ended=at.wall))
        kept = await w.database.read(lambda connection: records.latest_runs(connection, 10))
        assert sorted(each.run_id for each in kept) == ["ahead", "ahead", "done"]
