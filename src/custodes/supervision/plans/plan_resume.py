"""Going on with a plan that was killed, cancelled, or came to a bad end.

What is done is kept, with its evidence. A read-only step that was in flight runs again. A mutable one whose
effect nobody knows is never run again by itself: it ends as ``unknown``, with what depends on it refused,
until an operator has said how it ended (:mod:`~custodes.supervision.plans.resolution`).
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from custodes.store import Connection
from custodes.supervision.conversation import Conversation
from custodes.supervision.dispatching.job import decided, why_disabled
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
from custodes.supervision.plans.plan_standing import PlanRunError, refuse_owned, settled, standing, unchanged
from custodes.supervision.record import records
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.recovery import close_dead_owners


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
    if decided(snapshot, supervision.module, None) == "off":
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
