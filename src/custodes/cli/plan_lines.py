"""A run of a plan, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from custodes.cli.output import paint, plain
from custodes.cli.report import backtrack_line, resolutions
from custodes.cli.run_lines import STYLES
from custodes.supervision.plans.plan_view import PlanView, StepView
from custodes.supervision.record.clock import local_time


def plan_line(plan: PlanView) -> str:
    done = sum(step.status == "done" for step in plan.steps)
    words = [
        f"plan {paint(plain(plan.name), 'bold')}  {local_time(plan.started)}",
        paint(plan.status, STYLES.get(plan.status, "yellow")),
        f"{done} of {len(plan.steps)} steps done",
    ]
    if plan.abandoned:
        words.append(paint("its owner died", "red"))
    return "  ".join((*words, paint(f"plan run {plan.plan_run}", "dim")))


def plan_lines(plan: PlanView) -> Iterator[str]:
    yield plan_line(plan)
    for step in plan.steps:
        yield f"  {_step(step)}"
    for told in plan.backtracks:
        yield f"  {backtrack_line(told)}"
    yield f"conversation {plain(plan.conversation)}, from {plain(plan.place or 'no file')}"
    yield from resolutions(plan.plan_run, plan.uncertain)
    if plan.abandoned or plan.status not in ("running", "done"):
        yield f"`cos run --resume {plan.plan_run}` goes on with what is not done"


def _step(step: StepView) -> str:
    words = [paint(plain(step.step), "bold"), step.role, "mutable" if step.mutable else "read-only"]
    status = step.status or "not begun"
    words.append(paint(status, STYLES.get(status, "yellow")))
    if step.resolved:
        words.append("as an operator says")
    if step.summary:
        words.append(plain(step.summary, 100))
    if step.run_id is not None:
        words.append(paint(f"run {step.run_id}", "dim"))
    return "  ".join(words)
