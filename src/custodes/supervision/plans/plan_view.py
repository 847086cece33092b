"""A run of a plan as people and surfaces see it."""

from __future__ import annotations

import msgspec

from custodes.store import Connection
from custodes.supervision.budgets.budget import Spending
from custodes.supervision.budgets.on_record import spent_of
from custodes.supervision.bundle import BacktrackTold
from custodes.supervision.plans.checkpoints import (
    PlanRow,
    PlanStatus,
    StepStatus,
    latest_plans,
    load_plan_row,
    load_steps,
    plans_of,
)
from custodes.supervision.plans.plan_standing import is_abandoned, standing
from custodes.supervision.record import records
from custodes.supervision.work import Budget


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """``status`` and ``run_id`` are None for a step that has not begun. ``uncertain``: an operator has to say
    how it ended; ``resolved``: one did."""

    step: str
    role: str
    mutable: bool
    status: StepStatus | None = None
    run_id: str | None = None
    summary: str = ""
    uncertain: bool = False
    resolved: bool = False


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the plan's order. ``abandoned``: whoever ran it died. Times are wall seconds since the
    epoch."""

    plan_run: str
    conversation: str
    name: str
    place: str | None
    digest: str
    status: PlanStatus
    abandoned: bool
    started: float
    ended: float | None
    steps: tuple[StepView, ...]
    backtracks: tuple[BacktrackTold, ...]

    @property
    def uncertain(self) -> tuple[str, ...]:
        """The steps that an operator has to resolve."""
        return tuple(step.step for step in self.steps if step.uncertain)


class PlanAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a plan with what it has spent of its budget. Of an abandoned one that is what was last
    written."""

    plan: PlanView
    budget: Budget
    spent: Spending


async def accounts_of(connection: Connection, conversation: str, at: float) -> list[PlanAccount]:
    """Those of a conversation, the oldest first.

    :param at: wall seconds: how much of its time a plan has spent that still runs.
    """
    return [
        _account(row, await _view(connection, row), at) for row in await plans_of(connection, conversation)
    ]


def _account(row: PlanRow, plan: PlanView, at: float) -> PlanAccount:
    spent = spent_of(row, at, abandoned=plan.abandoned)
    return PlanAccount(plan=plan, budget=row.ledger.budget, spent=spent)


async def view_plan(connection: Connection, run: str) -> PlanView | None:
    row = await load_plan_row(connection, run)
    return None if row is None else await _view(connection, row)


async def view_latest_plans(connection: Connection, limit: int) -> list[PlanView]:
    """Newest first."""
    return [await _view(connection, row) for row in await latest_plans(connection, limit)]


async def _view(connection: Connection, row: PlanRow) -> PlanView:
    rows, abandoned = await load_steps(connection, row.id), is_abandoned(row)
    steps: list[StepView] = []
    for step in row.plan.steps:
        view = StepView(step=step.id, role=step.role, mutable=step.may_change)
        if (found := rows.get(step.id)) is not None:
            evidence = found.outcome.evidence if found.outcome else None
            over = abandoned or row.status != "running"
            attempts = await records.of_run(connection, found.run_id) if over else []
            view = msgspec.structs.replace(
                view,
                status=found.status,
                run_id=found.run_id,
                summary=evidence.summary if evidence else "",
                uncertain=over and standing(found, attempts) == "stop",
                resolved=found.resolved,
            )
        steps.append(view)
    return PlanView(
        plan_run=row.id,
        conversation=row.conversation,
        name=row.name,
        place=row.place,
        digest=row.digest,
        status=row.status,
        abandoned=abandoned,
        started=row.started,
        ended=row.ended,
        steps=tuple(steps),
        backtracks=row.backtracks,
    )
