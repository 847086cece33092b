"""``cos runs cancel|asks|answer``: what is asked of whoever owns a run, from any process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, FAILED, CliError, paint, plain, write, write_json


async def cancel(
    target: Annotated[
        str, Parameter(help="The id of a run, a conversation or a plan's run, as `cos runs list` has them.")
    ],
    /,
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """End a run with all that it started, or a whole conversation, and show what each run came to.

    Its owner ends it, and proves that nothing of it is left, before this returns;
    what an owner that died has left is ended here. What had ended stays as it
    was.
    """
    project = project_at(project_dir)

    from custodes.cli.run_lines import run_line
    from custodes.supervision.asks.operator_ask import cancel_in_file

    report = await cancel_in_file(project, target, "cli")
    if report is None:
        raise CliError(
            f"no run and no conversation {plain(target)!r} is on record in {project}; `cos runs list` shows "
            "those that are",
            kind="record",
        )
    if format == "json":
        write_json(report)
    else:
        for run in report.runs:
            write(run_line(run))
        if not report.runs:
            write(f"nothing of {plain(target)} runs any more")
        for pid in report.unanswered:
            write(paint(f"the owner (pid {pid}) did not prove the end of it in time", "red"))
    return FAILED if report.unanswered else DONE


async def asks(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """List what children ask leave for and nobody has answered yet. Changes nothing."""
    project = project_at(project_dir)

    from custodes.cli.run_lines import ask_line
    from custodes.supervision.asks.operator_ask import asks_in_file

    waiting = await asks_in_file(project)
    if format == "json":
        write_json({"asks": waiting})
        return DONE
    for row in waiting:
        write(ask_line(row))
    if not waiting:
        write("no child asks leave for anything")
    return DONE


async def answer(
    ask: Annotated[str, Parameter(help="The ask's id, as `cos runs asks` shows it.")],
    answer: Annotated[Literal["allow", "deny"], Parameter(help="The answer.")],
    /,
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Answer what a child asks leave for.

    The first answer counts: exit code 1 where another one came before.
    """
    project = project_at(project_dir)

    from custodes.supervision.asks.operator_ask import answer_in_file

    given = await answer_in_file(project, ask, answer, "cli")
    if format == "json":
        write_json(given)
    elif given.first:
        write(f"{plain(ask)}: {given.answer}")
    else:
        write(f"{plain(ask)} was answered before: {given.answer}, by {plain(given.by)}")
    return DONE if given.first or given.answer == answer else FAILED
