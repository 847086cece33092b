"""The attempt rows: every field comes back, and ends are composed by us."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import asdict

from custodes.adapters.port import Failure, Usage
from custodes.policy.routing import Route
from custodes.supervision.pools.admission import Candidate
from custodes.supervision.record import records
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.record.records import (
    AttemptEnd,
    AttemptRow,
    AttemptStart,
    Group,
    closed,
    refused_row,
)
from custodes.supervision.work import Outcome, Refusal
from custodes.telemetry import Lineage
from support.health import failed, limit, world

FULL = AttemptRow(
    run_id="run-1",
    number=2,
    conversation="c1",
    role="implementer",
    name="step one",
    mutable=True,
    parent_run="run-0",
    adapter="one",
    model="m",
    effort="high",
    fingerprint="f",
    pool="one:a",
    generation=3,
    health_state="half_open",
    probe=True,
    confirmed=True,
    status="failed",
    category="capacity",
    retry_after_s=9,
    outcome="known_failed",
    reason="capacity on one:a",
    input_tokens=1,
    output_tokens=2,
    cached_input_tokens=3,
    cost_usd=0.25,
    native_thread_id="t",
    served_model="m-1",
    owner=Owner(7, 8.0, "boot", "space"),
    started=10.5,
    ended=11.5,
    fan_out=Group("run-1", "review"),
    trace=Lineage(trace="1" * 32, conversation="2" * 16, child="3" * 16, call="4" * 16),
    fallback_reason="auth",
)


@pytest.mark.anyio
async def test_every_field_of_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    assert all(value for value in asdict(FULL).values()), "a field that is not set shows nothing here"
    async with world(tmp_path) as w:
        await w.database.write(lambda connection: records.insert(connection, [FULL]))
        assert await w.database.read(lambda connection: records.by_id(connection, [FULL.id])) == [FULL]


@pytest.mark.anyio
async def test_an_update_writes_all_that_may_change_and_nothing_of_what_was_asked(tmp_path: Path) -> None:
    asked = AttemptRow(id=FULL.id, run_id="run-2", number=1, conversation="c2", role="reviewer")
    async with world(tmp_path) as w:
        await w.database.write(lambda connection: records.insert(connection, [asked]))
        await w.database.write(lambda connection: records.update(connection, [FULL]))
        (row,) = await w.database.read(lambda connection: records.by_id(connection, [FULL.id]))
    changed = {name for name, value in asdict(FULL).items() if value != asdict(asked)[name]}
    written = {name for name, value in asdict(row).items() if value != asdict(asked)[name]}
    at_the_start = AttemptStart.__struct_fields__ + Candidate.__struct_fields__
    assert changed - written <= {*at_the_start, "generation", "health_state", "probe", "owner", "started"}
    assert {name: asdict(row)[name] for name in written} == {name: asdict(FULL)[name] for name in written}
    assert "trace" in written


@pytest.mark.anyio
async def test_what_one_commit_let_in_is_read_in_the_order_in_which_it_was_asked_for(tmp_path: Path) -> None:
    asked = [
        AttemptRow(run_id=new_id(), number=1, conversation="c", role="reviewer", started=1.0, ended=2.0)
        for _ in range(20)
    ]
    async with world(tmp_path) as w:
        await w.database.write(lambda connection: records.insert(connection, asked))
        read = await w.database.read(partial(records.of_conversation, conversation="c"))
    assert read == asked


@pytest.mark.anyio
async def test_the_newest_runs_are_found_however_many_attempts_each_of_them_has(tmp_path: Path) -> None:
    rows = [
        AttemptRow(run_id=f"r{run}", number=number, conversation="c", role="reviewer", started=at)
        for run, number, at in [(1, 1, 5.0), (0, 1, 9.0), *((2, n, 10.0 + n) for n in range(30)), (3, 1, 1.0)]
    ]
    async with world(tmp_path) as w:
        await w.database.write(lambda connection: records.insert(connection, rows))
        found = {
            limit: await w.database.read(partial(records.latest_runs, limit=limit)) for limit in (1, 2, 3, 9)
        }
    newest = ["r2", "r0", "r1", "r3"]
    assert {limit: {row.run_id for row in some} for limit, some in found.items()} == {
        limit: set(newest[:limit]) for limit in found
    }
    assert [len(some) for some in found.values()] == [30, 31, 32, 33]
    assert all(list(some) == sorted(some, key=lambda row: row.started) for some in found.values())


@pytest.mark.parametrize(
    ("failure", "mutable", "status"),
    [
        (None, True, "done"),
        (limit(), True, "failed"),
        (failed("timeout"), True, "unknown"),
        (failed("timeout"), False, "failed"),
    ],
)
def test_the_status_follows_from_the_failure_and_what_it_may_have_done(
    failure: Failure | None, mutable: bool, status: str
) -> None:
    row = AttemptRow(run_id="r", number=1, conversation="c", role="reviewer", pool="one:a", mutable=mutable)
    end = AttemptEnd(usage=Usage(input_tokens=5, cost_usd=0.1))
    after = closed(row, failure, end, 20.0)
    assert (after.status, after.ended, after.input_tokens, after.cost_usd) == (status, 20.0, 5, 0.1)


def test_a_refusal_and_a_skip_have_rows_of_their_own() -> None:
    route = Route(role="reviewer", adapter="one", model="m", effort=None, timeout_s=300, pool="one:a")
    refusal = Refusal(category="capacity", reason="cooling", retry_after_s=5, route=route)
    outcome = Outcome(run_id="r", role="reviewer", name="n", status="refused", refusal=refusal)
    row = refused_row("c1", outcome, 30.0, mutable=False)
    assert (row.status, row.category, row.retry_after_s) == ("refused", "capacity", 5)
    assert (row.pool, row.adapter, row.started, row.ended) == ("one:a", "one", 30.0, 30.0)
    skipped = refused_row("c1", Outcome(run_id="r", role="reviewer", name="n", status="skipped"), 30.0)
    assert (skipped.status, skipped.category, skipped.reason) == ("skipped", None, "skipped")
