"""A plan's record where the store fails, and how long it is kept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import custodes
from custodes.adapters.port import Failure
from custodes.store import Connection, Database, StoreError
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.events import ChildEnded, ChildQueued, Event
from custodes.supervision.plans import plan_book, plan_run
from custodes.supervision.plans.checkpoints import (
    PlanRow,
    StepRow,
    load_plan_row,
    load_steps,
    prune_plans,
    save_plan,
    save_steps,
)
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_book import PlanBook
from custodes.supervision.plans.plan_resume import resume_plan
from custodes.supervision.plans.plan_run import run_plan
from custodes.supervision.plans.plan_standing import PlanRunError
from custodes.supervision.record import records
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.schema import MIGRATIONS
from custodes.supervision.work import Budget, Outcome
from support import scripted
from support.full_disk import FullDisk

PLAN = Plan(
    steps=(
        Step(id="find", role="reviewer", prompt="find"),
        Step(id="fix", role="implementer", prompt="fix", needs=("find",)),
    )
)


def plan_row(name: str, changed: float = 0.0) -> PlanRow:
    return PlanRow(
        id=name,
        conversation="c",
        name=name,
        place=None,
        digest=PLAN.digest,
        plan=PLAN,
        ledger=Ledger(budget=Budget(), opened_at=0),
        owner=this_process(),
        started=changed,
        changed=changed,
    )


def step_row(plan: str, step: str, **fields: Any) -> StepRow:
    stated: dict[str, Any] = {"run_id": f"{plan}-{step}", "mutable": True, "started": 0.0}
    return StepRow(plan=plan, step=step, **stated | fields)


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> Any:
    opened = await Database.open(tmp_path / "custodes.db", MIGRATIONS)
    yield opened
    await opened.aclose()


async def keep(database: Database, row: PlanRow, *steps: StepRow) -> None:
    async def fold(connection: Connection) -> None:
        await save_plan(connection, row)
        await save_steps(connection, steps)

    await database.write(fold)


@pytest.mark.anyio
async def test_an_end_that_cannot_be_written_goes_out_with_the_next(database: Database) -> None:
    row = plan_row("p")
    await keep(database, row, step_row("p", "find"))
    failing = FullDisk(database)
    book = PlanBook(row, lambda: failing)  # type: ignore[arg-type, return-value]  # the disk is full for a while
    outcome = Outcome(run_id="p-find", role="reviewer", name="find", status="done")
    await book.ended([step_row("p", "find").ended_as(outcome, 1.0)], backtracks=())
    with pytest.raises(StoreError):
        await book.starting([step_row("p", "fix")])
    assert (await database.read(lambda c: load_steps(c, "p")))["find"].status == "running"
    failing.full = False
    await book.starting([step_row("p", "fix")])
    steps = await database.read(lambda c: load_steps(c, "p"))
    assert {name: each.status for name, each in steps.items()} == {"find": "done", "fix": "running"}


@pytest.mark.anyio
async def test_a_step_that_is_to_run_again_is_as_if_it_had_never_begun(database: Database) -> None:
    row = plan_row("p")
    await keep(database, row, step_row("p", "find"), step_row("p", "fix"))
    failing = FullDisk(database)
    book = PlanBook(row, lambda: failing)  # type: ignore[arg-type, return-value]  # as above
    outcome = Outcome(run_id="p-find", role="reviewer", name="find", status="done")
    await book.ended([step_row("p", "find").ended_as(outcome, 1.0)], backtracks=())
    await book.ended([], backtracks=(), again=["find", "fix"])
    failing.full = False
    await book.close("cancelled", [])
    assert await database.read(lambda c: load_steps(c, "p")) == {}
    closed = await database.read(lambda c: load_plan_row(c, "p"))
    assert closed is not None
    assert (closed.status, closed.owner) == ("cancelled", None)


@pytest.mark.anyio
async def test_a_step_whose_start_cannot_be_put_on_record_does_not_start(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_run, "WAIT_S", 5.0)
    monkeypatch.setattr(plan_book, "WAIT_S", 0.05)
    with closing(sqlite3.connect(tmp_path / ".coding-os" / "custodes.db", isolation_level=None)) as other:

        def hold(event: Event) -> None:
            """Another process holds the file from the end of the first step until the second is refused."""
            if isinstance(event, ChildEnded) and event.outcome.name == "find":
                other.execute("BEGIN IMMEDIATE")
            if isinstance(event, ChildQueued) and event.name == "fix":
                other.execute("ROLLBACK")

        async with custodes.Supervision(tmp_path, observer=hold) as supervision:
            async with supervision.conversation("c") as parent:
                end = await run_plan(parent, PLAN)
    found, fixed = end.outcomes
    assert (found.status, fixed.status) == ("done", "refused")
    assert fixed.refusal is not None
    assert fixed.refusal.category == "unavailable"
    assert "that it starts cannot be put on record" in fixed.refusal.reason
    assert len(script.requests) == 1
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        again = await resume_plan(parent, end.run)
    assert [outcome.status for outcome in again.outcomes] == ["done", "done"]
    assert [request.role for request in script.requests] == ["reviewer", "implementer"]


@pytest.mark.anyio
async def test_while_supervision_is_off_nothing_is_gone_on_with(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path, module=False) as supervision:
        async with supervision.conversation("c") as parent:
            with pytest.raises(PlanRunError, match="module=False"):
                await resume_plan(parent, "p")
    assert not (tmp_path / ".coding-os" / "custodes.db").exists()


@pytest.mark.anyio
async def test_a_plan_is_kept_as_long_as_a_person_may_still_have_to_look_at_it(database: Database) -> None:
    unknown = Failure(category="timeout", reason="no answer within 5 s")
    lost = Outcome(run_id="r", role="implementer", name="fix", status="unknown", failure=unknown)
    await keep(database, plan_row("old"), step_row("old", "fix", status="done"))
    await keep(database, plan_row("uncertain"), step_row("uncertain", "fix").ended_as(lost, 1.0))
    await keep(database, plan_row("in flight"), step_row("in flight", "fix"))
    await keep(database, plan_row("resolved"), step_row("resolved", "fix", status="failed", resolved=True))
    await keep(database, plan_row("new", changed=9.0), step_row("new", "fix", status="done"))

    async def ids(connection: Connection) -> list[str]:
        return [row[0] for row in await connection.execute_fetchall("SELECT id FROM plans ORDER BY id")]

    await database.write(lambda connection: prune_plans(connection, 5.0))
    assert await database.read(ids) == ["in flight", "new", "uncertain"]
    assert await database.read(lambda connection: load_steps(connection, "old")) == {}


@pytest.mark.anyio
async def test_what_a_step_in_flight_had_come_to_is_kept_with_it(database: Database) -> None:
    """Else it would read as never begun, and be run again."""
    await keep(database, plan_row("p"), step_row("p", "fix", run_id="kept"))

    async def attempts(connection: Connection) -> list[str]:
        rows = [
            records.AttemptRow(
                run_id=run, number=1, conversation="c", role="implementer", status="cancelled", ended=1.0
            )
            for run in ("kept", "gone")
        ]
        await records.insert(connection, rows)
        await records.prune(connection, 5.0)
        return [row.run_id for run in ("kept", "gone") for row in await records.of_run(connection, run)]

    assert await database.write(attempts) == ["kept"]
