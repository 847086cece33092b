"""``cos runs``: what ran in this project, from its own record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, CliError, plain, usage_error, write, write_json

app = App(
    name="runs",
    help="Show what ran here and how each run went; cancel one, or answer what it asks leave for.",
    help_format="plaintext",
)
for _name in ("cancel", "asks", "answer"):
    app.command(f"custodes.cli.run_requests:{_name}", name=_name)
app.command("custodes.cli.resolve:resolve", name="resolve")


@app.command(name="list")
async def list_(
    *,
    limit: Annotated[int, Parameter(help="How many of the newest runs.")] = 20,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """List the newest runs by conversation, and the newest runs of plans, newest first.

    Reads the project's own file; asks no provider and changes nothing.
    """
    if limit < 1:
        raise usage_error(f"--limit {limit} shows nothing; 1 or more would work")
    project = project_at(project_dir)

    from custodes.cli.plan_lines import plan_line
    from custodes.cli.run_lines import conversation_line, tree_lines
    from custodes.supervision.record.record_file import RecordFile
    from custodes.supervision.record.run_view import conversations_of

    async with RecordFile(project) as file:
        found = conversations_of(await file.latest(limit))
        plans = await file.latest_plans(limit)
    if format == "json":
        write_json({"conversations": found, "plans": plans})
        return DONE
    ids = {conversation.conversation for conversation in found}
    for plan in plans:
        if plan.conversation not in ids:  # nothing of it was asked of any runtime
            write(plan_line(plan))
    for conversation in found:
        write(conversation_line(conversation))
        for plan in plans:
            if plan.conversation == conversation.conversation:
                write(f"  {plan_line(plan)}")
        for line in tree_lines(conversation.runs, attempts=False):
            write(f"  {line}")
    if not found and not plans:
        write("nothing ran here under supervision yet; `cos dispatch` and `cos run` start something")
    return DONE


@app.command
async def show(
    run: Annotated[str, Parameter(help="The run's id, as `cos runs list` shows it.")],
    /,
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show one run: every attempt with its adapter, model, effort, pool, health decision and usage.

    For an attempt whose runtime named its session: where its transcript is, and
    the command that goes on with it; and what was spent of its fan-out's budget.
    Of a run of a plan: each step, how it stands, what was spent of its budget,
    and what an operator has to say of it.
    """
    project = project_at(project_dir)

    import time

    from custodes.cli.budget_words import budget_lines, fan_out_lines
    from custodes.cli.plan_lines import plan_lines
    from custodes.cli.run_lines import run_line, tree_lines
    from custodes.cli.transcripts import thread_lines
    from custodes.supervision.record.record_file import RecordFile
    from custodes.supervision.record.run_view import runs_of
    from custodes.supervision.record.threads import with_threads

    async with RecordFile(project) as file:
        found = runs_of(await file.run(run))
        around = runs_of(await file.conversation(found[0].conversation)) if found else ()
        fan_outs = await file.fan_outs(found[0].conversation, time.time()) if found else ()
        plan = await file.plan(run)
        plans = await file.plan_accounts(plan.conversation, time.time()) if plan else ()
    if plan is not None:
        if format == "json":
            write_json(plan)
            return DONE
        account = next(each for each in plans if each.plan.plan_run == run)
        for line in (*plan_lines(plan), *budget_lines(account.budget, account.spent)):
            write(line)
        return DONE
    if not found:
        raise CliError(
            f"no run {plain(run)!r} is on record in {project}; `cos runs list` shows those that are",
            kind="record",
        )
    only = with_threads(found[0], project)
    if format == "json":
        write_json(only)
        return DONE
    for line in tree_lines(found):
        write(line)
    for below in around:
        if below.parent_run == only.run_id:
            write(f"started {run_line(below)}")
    if only.parent_run is not None:
        write(f"started by run {plain(only.parent_run)}")
    write(f"conversation {plain(only.conversation)}, {'mutable' if only.mutable else 'read-only'}")
    group = only.attempts[0].fan_out
    for line in fan_out_lines(each for each in fan_outs if group is not None and each.fan_out == group.id):
        write(line)
    for line in (line for thread in only.threads for line in thread_lines(thread)):
        write(line)
    return DONE
