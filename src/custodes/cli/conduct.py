"""One conversation from the command line: shown while it runs, ended whole by Ctrl-C or TERM."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from custodes.cli.output import DONE, SIGNALLED, CliError, Format, complain, write_json
from custodes.cli.report import report_of, write_report
from custodes.cli.tree import View
from custodes.supervision import Conversation, Supervision
from custodes.supervision.work import Outcome

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Ask = Callable[[Conversation], Awaitable[Sequence[Outcome]]]


async def conduct(project: Path, name: str, ask: Ask, *, adapter: str = "", form: Format = "text") -> int:
    """Run ``ask`` in a conversation of its own, show it, write its report, and return the exit code.

    A signal cancels the conversation: every child and all it started is gone before this returns.
    """
    view = View(name, form)
    started = time.monotonic()
    ended_by: list[int] = []
    outcomes: Sequence[Outcome] | None = None

    async with anyio.create_task_group() as group:
        with anyio.open_signal_receiver(*_SIGNALS) as signals:
            work = anyio.CancelScope()

            async def listen() -> None:
                async for number in signals:
                    if ended_by:
                        complain("cos: already ending every child; this takes a few seconds at most")
                    ended_by.append(number)
                    work.cancel()

            group.start_soon(listen)
            with work:
                async with view.shown():
                    try:
                        async with (
                            Supervision(project=project, observer=view.observe) as supervision,
                            supervision.conversation(f"cli-{name}", adapter=adapter) as parent,
                        ):
                            outcomes = await ask(parent)
                    finally:
                        view.close()
            group.cancel_scope.cancel()

    cancelled = bool(ended_by) and outcomes is None
    report = report_of(
        name,
        outcomes if outcomes is not None else view.tree.outcomes,
        time.monotonic() - started,
        cancelled=cancelled,
    )
    if form == "json":
        write_json(report)
    else:
        write_report(report)
    if cancelled:
        return SIGNALLED + ended_by[0]
    return report.code


def check_project(project: Path) -> Path:
    """The project's real path.

    :raises CliError: it is no directory.
    """
    if not project.is_dir():
        raise CliError(f"{project} is no directory; -d names the project's", kind="usage", code=2)
    return project.resolve()


__all__ = ["DONE", "Ask", "check_project", "conduct"]
