"""``cos scopes``: who holds which files to write, who waits for them, and an operator's way to end a hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, FAILED, paint, plain, write, write_json

if TYPE_CHECKING:
    from custodes.supervision.writers.scope_file import ScopeView

app = App(
    name="scopes",
    help="Show which work holds what to write, and release a hold that nobody will end.",
    help_format="plaintext",
)


@app.command(name="list")
async def list_(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """List every scope that is held or waited for, in the order of the line. Changes nothing."""
    project = project_at(project_dir)

    from custodes.supervision.writers.scope_file import read_scopes

    views = await read_scopes(project)
    if format == "json":
        write_json({"scopes": views})
        return DONE
    for view in views:
        write(_line(view))
    if not views:
        write("nothing is held to write, and nothing waits")
    return DONE


@app.command
async def release(
    target: Annotated[
        str, Parameter(help="The RUN that holds it, or the NUMBER that `cos scopes list` shows.")
    ],
    /,
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Release a scope though its holder is not proven gone.

    It ends no process, so two may then write to the same files; look at `cos
    scopes list` first. What the holder reports later is refused. It is written to
    .coding-os/extensions-audit.log. Exit code 1 where nothing of that name is
    held.
    """
    project = project_at(project_dir)

    from custodes.supervision.writers.scope_file import release_in_file

    released = await release_in_file(project, target, "cli")
    if format == "json":
        overridden = [view.overridden for view in released]
        write_json({"target": target, "released": released, "overridden": overridden})
    for view in released if format == "text" else ():
        write(f"released {plain(', '.join(view.places))} (number {view.number}, run {plain(view.run_id)})")
        write(f"  overridden: {plain(view.overridden)}")
    if not released and format == "text":
        write(f"nothing is held by '{plain(target)}'; `cos scopes list` lists what is")
    return DONE if released else FAILED


def _line(view: ScopeView) -> str:
    state = paint(f"{view.state:<8}", "green" if view.state == "held" else "yellow")
    owner = f"pid {view.pid}"
    if view.owner != "alive":
        owner += f", {paint(view.owner, 'red')}"
    told = "" if view.silent_s is None else f", last heard of {view.silent_s} s ago"
    left = f"  {paint('left running', 'red')}: {plain(', '.join(view.left))}" if view.left else ""
    places = plain(", ".join(view.places))
    return f"{view.number:>4}  {state} {places}  run {plain(view.run_id)} ({owner}{told}){left}"
