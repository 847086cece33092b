"""``cos cognition trace``: who did what in a conversation, as the operator's playbook asks for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio
import msgspec
from cyclopts import App, Parameter

from custodes.cli.options import ProjectDir, project_at
from custodes.cli.output import (
    CLEAR_SCREEN,
    DONE,
    CliError,
    is_terminal,
    plain,
    usage_error,
    write,
    write_json,
)

if TYPE_CHECKING:
    from custodes.supervision.record.record_file import RecordFile
    from custodes.supervision.record.run_view import AttemptView
    from custodes.supervision.record.trace import Trace

app = App(
    name="cognition",
    help="Verify that work ran where it was meant to.",
    help_format="plaintext",
)

TraceFormat = Literal["tree", "json", "otlp-json"]
_LOOK_S = 0.5


@app.command
async def trace(
    session: Annotated[str, Parameter(help="The conversation's id, as `cos runs list` shows it.")],
    /,
    *,
    follow: Annotated[
        bool,
        Parameter(name="--follow", negative=(), help="Go on until nobody works on it any more, or Ctrl-C."),
    ] = False,
    project_dir: ProjectDir = Path(),
    format: Annotated[  # noqa: A002 - the option's word
        TraceFormat,
        Parameter(
            name="--format",
            help="A tree for people, or one JSON document (with --follow a JSON line for each change); "
            "otlp-json is the tree's spans, as a collector takes them on /v1/traces.",
        ),
    ] = "tree",
) -> int:
    """Show each child of a conversation: adapter, model, effort, health decision, and how it ended.

    Reads the project's own file and changes nothing.
    """
    project = project_at(project_dir)
    if follow and format == "otlp-json":
        raise usage_error("--follow shows what changes, and spans are told once; --format json follows")

    from custodes.supervision.record.record_file import RecordFile
    from custodes.supervision.record.trace import trace_in

    async with RecordFile(project) as file:
        found = await trace_in(file, session)
        if not found.attempts:
            raise CliError(
                f"nothing is on record of conversation {plain(session)!r} in {project}; `cos runs list` "
                "shows what is (work that supervision did not apply to leaves no record)",
                kind="record",
            )
        if follow:
            await _follow(file, found, format)
        elif format == "otlp-json":
            write(_spans(project, found.attempts))
        elif format == "json":
            write_json(found)
        else:
            write(_tree(found))
    return DONE


def _spans(project: Path, attempts: tuple[AttemptView, ...]) -> str:
    import time

    from custodes.adapters.registry import Registry
    from custodes.supervision.record.span_tree import spans_of
    from custodes.telemetry.otlp import write_json as otlp_json

    provider = Registry.discover(project).provider
    return otlp_json(spans_of(attempts, until=time.time(), provider=provider)).decode()


async def _follow(file: RecordFile, found: Trace, form: TraceFormat) -> None:
    """Until every owner of its rows is proven dead: then no row is open that anybody could still close."""
    from custodes.supervision.record.owner_identity import proven_dead
    from custodes.supervision.record.trace import trace_in

    shown: tuple[AttemptView, ...] = ()
    while True:
        over = all(proven_dead(owner) for owner in {row.owner for row in found.attempts})
        if over:  # what its last owner wrote before it went
            found = await trace_in(file, found.conversation)
        if found.attempts != shown:
            _show_change(shown, found, form)
            shown = found.attempts
        if over:
            return
        await anyio.sleep(_LOOK_S)
        found = await trace_in(file, found.conversation)


def _show_change(before: tuple[AttemptView, ...], after: Trace, form: TraceFormat) -> None:
    from custodes.cli.run_lines import attempt_words

    if form == "tree" and is_terminal(sys.stdout):
        write(CLEAR_SCREEN + _tree(after))
        return
    for row in after.attempts:
        if row in before:
            continue
        if form == "json":
            write(msgspec.json.encode(row).decode())
        else:
            write(f"{plain(row.name or row.role)}: {row.number}. {attempt_words(row)}")


def _tree(found: Trace) -> str:
    from custodes.cli.budget_words import fan_out_lines
    from custodes.cli.run_lines import conversation_line, tree_lines
    from custodes.supervision.record.run_view import conversations_of

    (conversation,) = conversations_of(found.attempts)
    lines = [*fan_out_lines(found.fan_outs), *tree_lines(conversation.runs)]
    return "\n".join((conversation_line(conversation), *(f"  {line}" for line in lines)))
