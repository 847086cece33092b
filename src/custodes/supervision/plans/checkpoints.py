"""The rows of plans and of their steps: each step's is written before it starts, and with its end.

They hold what a restart needs: the plan's text and digest, each ended step's evidence, what was spent, and
who runs the plan. Of a step that is in flight when its host dies, the row says that it had been begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from custodes.store import Connection, Table
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.bundle import BacktrackTold
from custodes.supervision.plans.plan import Plan
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.work import Outcome, Status

PlanStatus = Literal["running", "done", "failed", "cancelled", "unknown"]
StepStatus = Literal["running"] | Status


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """One step as far as it got. Times are wall seconds since the epoch.

    ``supervised``: this host writes a row before each of its attempts. ``resolved``: an operator said how it
    ended.
    """

    plan: str
    step: str
    run_id: str
    mutable: bool
    supervised: bool = True
    status: StepStatus = "running"
    outcome: Outcome | None = None
    resolved: bool = False
    started: float
    ended: float | None = None

    def ended_as(self, outcome: Outcome, at: float) -> StepRow:
        return replace(self, status=outcome.status, outcome=outcome, ended=at)

    @property
    def uncertain(self) -> bool:
        """Whether it is mutable, has ended, and may have had an effect that nobody knows of: it is never run
        again but by an operator's word."""
        if not self.mutable or self.resolved:
            return False
        failure = self.outcome.failure if self.outcome is not None else None
        if self.status == "failed":
            return failure is not None and failure.outcome == "unknown"
        if self.status == "cancelled":  # was a runtime stopped at it?
            attempts = self.outcome.attempts if self.outcome is not None else ()
            return not self.supervised or any(attempt.failure is None for attempt in attempts)
        return self.status == "unknown"


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a plan. ``place`` is the plan's file; None where it came from none. ``owner`` is the process
    that runs it now. ``changed`` is when anything of it was last written."""

    id: str
    conversation: str
    name: str
    place: str | None
    digest: str
    plan: Plan
    ledger: Ledger
    backtracks: tuple[BacktrackTold, ...] = ()
    status: PlanStatus = "running"
    owner: Owner | None = None
    started: float
    changed: float
    ended: float | None = None


PLANS = Table("plans", PlanRow)
STEPS = Table("plan_steps", StepRow)


async def save_plan(connection: Connection, row: PlanRow) -> None:
    await PLANS.replace(connection, [row])


async def save_steps(connection: Connection, rows: Iterable[StepRow]) -> None:
    """What the host's own dispatch returned is the host's, and is not kept."""
    kept = (
        row if row.outcome is None else replace(row, outcome=replace(row.outcome, native=None))
        for row in rows
    )
    await STEPS.replace(connection, kept)


async def delete_steps(connection: Connection, plan: str, steps: Iterable[str]) -> None:
    await connection.executemany(
        "DELETE FROM plan_steps WHERE plan = ? AND step = ?", ((plan, step) for step in steps)
    )


async def plans_of(connection: Connection, conversation: str) -> list[PlanRow]:
    """Those of one conversation, the oldest first."""
    return await PLANS.select(connection, "WHERE conversation = ? ORDER BY started, id", conversation)


async def load_plan_row(connection: Connection, plan: str) -> PlanRow | None:
    return next(iter(await PLANS.select(connection, "WHERE id = ?", plan)), None)


async def load_steps(connection: Connection, plan: str) -> dict[str, StepRow]:
    """By the id of their step."""
    return {row.step: row for row in await STEPS.select(connection, "WHERE plan = ?", plan)}


async def step_of_run(connection: Connection, run_id: str) -> StepRow | None:
    return next(iter(await STEPS.select(connection, "WHERE run_id = ?", run_id)), None)


async def latest_plans(connection: Connection, limit: int) -> list[PlanRow]:
    """Newest first."""
    return await PLANS.select(connection, "ORDER BY started DESC, id DESC LIMIT ?", limit)


async def prune_plans(connection: Connection, before: float) -> None:
    """Delete the plans in which nothing has happened since this wall time, but for those with a mutable step
    that an operator has yet to resolve."""
    found = await connection.execute_fetchall("SELECT id FROM plans WHERE changed < ?", (before,))
    for (plan,) in found:
        steps = await load_steps(connection, plan)
        if any(row.uncertain or (row.mutable and row.status == "running") for row in steps.values()):
            continue
        for table, column in (("plan_steps", "plan"), ("plans", "id")):
            await connection.execute_fetchall(f"DELETE FROM {table} WHERE {column} = ?", (plan,))  # noqa: S608 - our own names
