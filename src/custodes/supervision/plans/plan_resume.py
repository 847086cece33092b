"""Going on with a plan that was killed, cancelled, or came to a bad end.

What is done is kept, with its evidence. A read-only step that was in flight runs again. A mutable one whose
effect nobody knows is never run again by itself: it ends as ``unknown``, with what depends on it refused,
until an operator has said how it ended (:mod:`~custodes.supervision.plans.resolution`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from custodes.adapters.port import Failure
from custodes.policy.trigger import applies
from custodes.store import Connection
from custodes.supervision.conversation import Conversation
from custodes.supervision.dispatching.job import why_disabled
from custodes.supervision.plans.checkpoints import (
    PlanRow,
    StepRow,
    delete_steps,
    load_plan_row,
    load_steps,
    save_plan,
    save_steps,
)
from custodes.supervision.plans.plan import Plan, PlanError, check
from custodes.supervision.plans.plan_book import WAIT_S, PlanBook
from custodes.supervision.plans.plan_run import Begun, PlanEnd, PlanRun
from custodes.supervision.record import records
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import pid_space, proven_dead, this_process
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.work import Outcome

Standing = Literal["keep", "again", "stop"]


class PlanRunError(Exception):
    """A plan run that cannot be gone on with, or not now: why, and what would work. Nothing was changed."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a resume knows before anything of it starts."""

    row: PlanRow
    kept: dict[str, StepRow]
    again: dict[str, StepRow]


async def resume_plan(
    parent: Conversation,
    run: str,
    *,
    plan: Plan | None = None,
    replan: bool = False,
    wait: float | None = None,
    begun: Begun | None = None,
) -> PlanEnd:
    """Go on with a run of a plan. What its dead owner left is ended first.

    Steps that start now are routed as things stand now; its wall seconds count from now.

    :param plan: the plan as it reads today; as it was recorded where None.
    :param replan: take ``plan`` though it has changed: a done step is kept where neither it nor anything it
        builds upon has.
    :raises PlanRunError: supervision is off, there is no such run, somebody runs it, or its plan has changed.
        Of several that ask at once, one goes on with it.
    :raises SettingsError: the settings cannot be read.
    :raises PlanError: the changed plan cannot be run.
    :raises StoreError: the record cannot be read or written.
    """
    if plan is not None and (problem := check(plan)) is not None:
        raise PlanError(problem)
    supervision = parent.supervision
    snapshot = supervision.settings.read()
    if applies(snapshot.policy, supervision.module and snapshot.module_enabled, None) == "off":
        raise PlanRunError(why_disabled(supervision.module, snapshot.module_enabled))
    tree = await supervision.tree()
    await close_dead_owners(tree.database(), now())

    async def take(connection: Connection) -> Known:
        known = await _known(connection, run, plan, replan=replan)
        await delete_steps(connection, run, known.again)
        await save_steps(connection, known.kept.values())
        await save_plan(connection, known.row)
        return known

    known = await tree.database().write(take, wait_s=WAIT_S)
    if begun is not None:
        begun(known.row)
    # A step that runs again is no second child, and how far its count had come when a host died is not known:
    # so those that are kept are counted anew, beside what all steps started below them.
    ledger = known.row.ledger
    children = sum(row.supervised and row.status != "skipped" for row in known.kept.values()) + ledger.nested
    return await PlanRun(
        parent,
        known.row.plan,
        wait=wait,
        book=PlanBook(known.row, tree.database),
        rows=known.kept,
        backtracks=list(known.row.backtracks),
        carried=replace(ledger, children=children),
    ).perform()


async def _known(connection: Connection, run: str, plan: Plan | None, *, replan: bool) -> Known:
    row = await load_plan_row(connection, run)
    if row is None:
        raise PlanRunError(f"there is no plan run {run!r} on record; `cos runs list` shows those there are")
    refuse_owned(row)
    if plan is not None and plan.digest != row.plan.digest and not replan:
        raise PlanRunError(
            f"the plan of run {run} has changed since it began; --replan goes on with the new one, and keeps "
            "the done steps that neither changed nor build upon what did"
        )
    steps = await load_steps(connection, run)
    kept: dict[str, StepRow] = {}
    for step, each in steps.items():
        attempts = await records.of_run(connection, each.run_id)
        if standing(each, attempts) != "again":
            kept[step] = settled(row, each, attempts)
    if plan is not None:
        kept = unchanged(row.plan.unfolded(), plan.unfolded(), kept)
        row = replace(row, plan=plan, digest=plan.digest, name=plan.name)
    row = replace(row, owner=this_process(), status="running", ended=None, changed=now().wall)
    return Known(row=row, kept=kept, again={step: each for step, each in steps.items() if step not in kept})


def refuse_owned(row: PlanRow) -> None:
    """:raises PlanRunError: somebody who is not proven dead runs it."""
    owner = row.owner
    if owner is None or proven_dead(owner):
        return
    if owner.space != pid_space():
        who = f"pid {owner.pid} of another pid namespace, which cannot be seen from here, may still run"
    else:
        who = "this process runs" if owner == this_process() else f"pid {owner.pid} runs"
    raise PlanRunError(f"{who} plan run {row.id}; it can be gone on with once that has ended")


def standing(row: StepRow, attempts: Sequence[AttemptRow]) -> Standing:
    """What a resume does with a step: pure.

    :param attempts: the rows of its run. Each is written before its runtime is called, so that a supervised
        step without any was never begun.
    """
    if row.status == "done":
        return "keep"
    if row.uncertain:
        return "stop"
    if row.status != "running" or not row.mutable:
        return "again"
    if not row.supervised:
        return "stop"
    if any(attempt.status in ("running", "unknown", "cancelled") for attempt in attempts):
        return "stop"
    return "keep" if attempts and attempts[-1].status == "done" else "again"


def settled(plan: PlanRow, row: StepRow, attempts: Sequence[AttemptRow]) -> StepRow:
    """A step that is not run again, as it now stands. What it said may be lost with its host."""
    if row.outcome is not None:
        return row
    name, role = row.step, next(step.role for step in plan.plan.steps if step.id == row.step)
    outcome = Outcome(run_id=row.run_id, role=role, name=name, status="done")
    if standing(row, attempts) == "stop":
        reason = "its host died while it was at work; it may have had an effect"
        failure = Failure(category="provider", reason=reason, accepted=True)
        outcome = replace(outcome, status="unknown", failure=failure)
    return row.ended_as(outcome, now().wall)


def unchanged(before: Plan, after: Plan, kept: Mapping[str, StepRow]) -> dict[str, StepRow]:
    """The rows that still hold for the new plan. Both plans are unfolded.

    :raises PlanRunError: a step whose effect nobody knows has changed, or is gone: under another id or
        prompt it would be run twice.
    """
    old = {step.id: step for step in before.steps}
    new = {step.id: step for step in after.steps}
    same = {step for step in new if old.get(step) == new[step]}
    held = {step: row for step, row in kept.items() if step in same and after.upstream(step) <= same}
    for step, row in kept.items():
        if step not in held and row.uncertain:
            raise PlanRunError(
                f"step {step!r} is mutable, and nobody knows how it ended; before the plan may go on without "
                f"it as it was, `cos runs resolve {row.plan} {step} done|failed` has to say so"
            )
    return {
        step: row
        for step, row in held.items()
        if row.uncertain or all(need in held and held[need].status == "done" for need in after.upstream(step))
    }


def is_abandoned(row: PlanRow) -> bool:
    """Whether nobody runs it any more, though nobody wrote down its end."""
    return row.status == "running" and (row.owner is None or proven_dead(row.owner))
