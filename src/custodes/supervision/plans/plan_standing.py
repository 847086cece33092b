"""How a plan on record stands: what of it is kept, what runs again, what stops it. No plan is run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from custodes.adapters.port import Failure
from custodes.supervision.plans.checkpoints import PlanRow, StepRow
from custodes.supervision.plans.plan import Plan
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import pid_space, proven_dead, this_process
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.work import Outcome

Standing = Literal["keep", "again", "stop"]


class PlanRunError(Exception):
    """A plan run that cannot be gone on with, or not now: why, and what would work. Nothing was changed."""


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
