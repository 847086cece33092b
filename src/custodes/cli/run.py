"""``cos run``: a plan's steps as children, as far in parallel as their needs allow; and going on with one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from custodes.cli.options import (
    FormatOption,
    Otlp,
    ProjectDir,
    SessionAdapter,
    Wait,
    note_outside,
    project_at,
    seconds,
)
from custodes.cli.output import CliError, complain, plain, usage_error
from custodes.paths import absent

if TYPE_CHECKING:
    from custodes import Conversation
    from custodes.supervision.plans.plan import Plan
    from custodes.supervision.plans.plan_run import Begun, PlanEnd
    from custodes.supervision.plans.plan_view import PlanView


async def run(
    plan: Annotated[Path | None, Parameter(help="The plan, a YAML file.")] = None,
    /,
    *,
    resume: Annotated[
        str, Parameter(help="Go on with this plan run: what is done is kept; PLAN only where it moved.")
    ] = "",
    replan: Annotated[
        bool, Parameter(negative=(), help="With --resume: take the plan as it reads now, though it changed.")
    ] = False,
    wait: Wait = None,
    adapter: SessionAdapter = "",
    otlp: Otlp = "",
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Run a plan: its steps as children, as parallel as their needs allow.

    A plan is a YAML file with `steps`, each with an id, a role and a prompt,
    and where wanted: scope, mutable, needs, adapter, model, effort, complexity,
    timeout and max_wait (seconds), estimate_tokens and estimate_usd. Beside
    them: name, pattern (sequence, concurrent, hand_off or group, in place of
    needs), max_parallel, max_backtracks and budget (children, depth,
    wall_seconds, tokens, usd, and when_spent: finish or stop).

    Example: cos run review.yaml --wait 60
    """
    if replan and not resume:
        raise usage_error("--replan goes with --resume RUN; a plan that has not begun is simply run")
    if plan is None and not resume:
        raise usage_error("PLAN is missing: name the YAML file, or --resume RUN to go on with one")
    project, wait_s = project_at(project_dir), seconds("--wait", wait)

    from custodes.cli.conduct import conduct, session_adapter
    from custodes.supervision.plans.plan import load_plan
    from custodes.supervision.plans.plan_resume import resume_plan
    from custodes.supervision.plans.plan_run import run_plan

    if plan is not None and not resume:
        loaded, place = load_plan(plan), plan.resolve() if plan.is_file() else None
        default = session_adapter(project, adapter)
        _note_outside(project, loaded)

        async def begin(parent: Conversation, begun: Begun) -> PlanEnd:
            return await run_plan(parent, loaded, wait=wait_s, place=place, begun=begun)

        return await conduct(project, loaded.name, begin, adapter=default, form=format, otlp=otlp)

    recorded = await _recorded(project, resume)
    now = _as_it_reads_now(recorded, plan, replan=replan)
    default = session_adapter(project, adapter)
    if now is not None:
        _note_outside(project, now)

    async def go_on(parent: Conversation, begun: Begun) -> PlanEnd:
        return await resume_plan(parent, resume, plan=now, replan=replan, wait=wait_s, begun=begun)

    return await conduct(
        project,
        now.name if now else recorded.name,
        go_on,
        adapter=default,
        form=format,
        otlp=otlp,
        conversation=recorded.conversation,
    )


def _note_outside(project: Path, plan: Plan) -> None:
    note_outside(project, (name for step in plan.steps if step.may_change for name in step.scope))


async def _recorded(project: Path, run: str) -> PlanView:
    from custodes.supervision.record.record_file import RecordFile

    async with RecordFile(project) as file:
        found = await file.plan(run)
    if found is None:
        raise CliError(
            f"no plan run {plain(run)!r} is on record in {project}; `cos runs list` shows those that are",
            kind="record",
        )
    return found


def _as_it_reads_now(recorded: PlanView, named: Path | None, *, replan: bool) -> Plan | None:
    """The plan in the named file, or in the one it began from; None where that is gone."""
    from custodes.supervision.plans.plan import load_plan

    place = named or (Path(recorded.place) if recorded.place else None)
    if named is None and (place is None or absent(place)):
        if replan:
            raise usage_error(
                f"the file of plan run {recorded.plan_run} is not there; name one: "
                f"`cos run PLAN --resume {recorded.plan_run} --replan`"
            )
        if place is not None:
            complain(f"cos: note: {place} is not there any more; the plan goes on as it was recorded")
        return None
    assert place is not None  # noqa: S101 - one of the two is named
    return load_plan(place)
