"""An operator's word on how mutable work of unknown outcome ended: audited, and the only way past it.

``done`` keeps a plan's step and goes on; ``failed`` says that it left nothing, so that a resume runs it
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from custodes.adapters.errors import near_miss
from custodes.adapters.port import Failure
from custodes.policy.roles import Role
from custodes.store import Connection
from custodes.supervision.evidence import Evidence, EvidenceError, parse
from custodes.supervision.plans.checkpoints import (
    PlanRow,
    StepRow,
    load_plan_row,
    load_steps,
    save_plan,
    save_steps,
    step_of_run,
)
from custodes.supervision.plans.plan_rules import status_of
from custodes.supervision.plans.plan_standing import refuse_owned, standing
from custodes.supervision.record import records
from custodes.supervision.record.audit import write_down
from custodes.supervision.record.clock import now
from custodes.supervision.record.project_file import overriding
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.work import Outcome

Said = Literal["done", "failed"]


class ResolutionError(Exception):
    """What cannot be resolved, and why. Nothing was changed."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """``plan`` and ``step`` are None for a run of no plan; ``before`` is how it stood."""

    run_id: str
    plan: str | None
    step: str | None
    before: str
    outcome: Said


async def resolve_in_file(
    project: Path,
    target: str,
    outcome: Said,
    by: str,
    *,
    step: str | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Resolved:
    """Say how a run ended: a plan's ``step``, or the run itself. What its dead owner left is ended first.

    :param target: a plan run's id (with ``step``), or the id of any run.
    :param evidence: what a step that is done brought, as its role's slice; its successors are handed it.
    :raises ResolutionError: there is no such run, its outcome is known, or the evidence does not fit.
    :raises PlanRunError: somebody runs its plan.
    :raises StoreError: the file cannot be read or written; nothing was changed.
    :raises AuditError: it was done, and could not be written down.
    """

    async def fold(connection: Connection) -> Resolved:
        found = await _step_meant(connection, target, step)
        attempts = await records.of_run(connection, found[1].run_id if found else target)
        if found is not None:
            resolved = await _resolve_step(connection, *found, attempts, outcome, evidence)
        elif evidence is not None:
            raise ResolutionError(f"run {target} is of no plan, so that nobody would be handed its evidence")
        else:
            resolved = _resolve_run(target, attempts, outcome)
        unknown = [row for row in attempts if row.status == "unknown"]
        reason = f"{outcome}, as an operator says"
        await records.update(connection, [replace(row, status=outcome, reason=reason) for row in unknown])
        return resolved

    async with overriding(project) as database:
        if database is None:
            raise ResolutionError(_nothing(target))
        await close_dead_owners(database, now())
        resolved = await database.write(fold)
    of_plan = f", step {resolved.step} of plan run {resolved.plan}" if resolved.plan else ""
    detail = f"run {resolved.run_id}{of_plan}: {resolved.before} is now {outcome}"
    await write_down(project, "runs.resolve", target, by, now(), (detail,))
    return resolved


async def _step_meant(
    connection: Connection, target: str, step: str | None
) -> tuple[PlanRow, StepRow] | None:
    """The plan and the step that are meant; None for a run of no plan."""
    plan = await load_plan_row(connection, target)
    if plan is None:
        if step is not None:
            raise ResolutionError(f"there is no plan run {target!r} on record; `cos runs list` shows them")
        row = await step_of_run(connection, target)
        plan = await load_plan_row(connection, row.plan) if row is not None else None
        return None if plan is None or row is None else (plan, row)
    ids = [each.id for each in plan.plan.steps]
    if step is None:
        raise ResolutionError(f"{target} is a run of a plan: name the step too; it has {', '.join(ids)}")
    if step not in ids:
        raise ResolutionError(f"plan run {target} has no step {step!r}{near_miss(step, ids)}")
    row = (await load_steps(connection, plan.id)).get(step)
    if row is None:
        raise ResolutionError(f"step {step!r} of plan run {target} has not begun; a resume runs it")
    return plan, row


async def _resolve_step(
    connection: Connection,
    plan: PlanRow,
    row: StepRow,
    attempts: Sequence[AttemptRow],
    said: Said,
    evidence: Mapping[str, Any] | None,
) -> Resolved:
    refuse_owned(plan)
    if not row.resolved and standing(row, attempts) != "stop":
        raise ResolutionError(f"step {row.step!r} of plan run {plan.id} {_known(row)}")
    role = next(each.role for each in plan.plan.steps if each.id == row.step)
    outcome = Outcome(
        run_id=row.run_id,
        role=role,
        name=row.step,
        status=said,
        attempts=row.outcome.attempts if row.outcome else (),
        evidence=_evidence(role, evidence) if evidence is not None else None,
        failure=None if said == "done" else _FAILED,
    )
    after = replace(row.ended_as(outcome, now().wall), resolved=True)
    await save_steps(connection, [after])
    if plan.status != "running":  # one that was killed reads as running until it is gone on with
        plan = replace(plan, status=status_of(plan.plan, await load_steps(connection, plan.id)))
    await save_plan(connection, replace(plan, changed=now().wall))
    return Resolved(run_id=row.run_id, plan=plan.id, step=row.step, before=row.status, outcome=said)


_FAILED = Failure(category="provider", reason="an operator says that it failed", outcome="known_failed")


def _known(row: StepRow) -> str:
    if row.status == "done":
        return "is done"
    if not row.mutable:
        return "is read-only, and a resume runs it again"
    return f"is known to have had no effect ({row.status}), and a resume runs it again"


def _evidence(role: Role, document: Mapping[str, Any]) -> Evidence:
    try:
        return parse(role, dict(document))
    except EvidenceError as error:
        raise ResolutionError(str(error)) from None


def _resolve_run(target: str, attempts: Sequence[AttemptRow], said: Said) -> Resolved:
    if not attempts:
        raise ResolutionError(_nothing(target))
    if not any(row.mutable and row.status == "unknown" for row in attempts):
        status = attempts[-1].status
        stands = "still runs" if status == "running" else f"ended as {status}"
        raise ResolutionError(
            f"run {target} {stands}; only mutable work of unknown outcome is an operator's to resolve"
        )
    return Resolved(run_id=target, plan=None, step=None, before="unknown", outcome=said)


def _nothing(target: str) -> str:
    return f"there is no run {target!r} on record; `cos runs list` shows those there are"
