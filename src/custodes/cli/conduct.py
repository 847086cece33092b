"""One conversation from the command line: shown while it runs, ended whole by Ctrl-C or TERM."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from custodes import Conversation, Outcome, Supervision
from custodes.adapters.agents import PROJECT_FILE
from custodes.adapters.registry import Registry
from custodes.cli.exported import exported
from custodes.cli.output import SIGNALLED, CliError, Format, complain, write_json
from custodes.cli.overview import ENABLE
from custodes.cli.report import report_of, write_report
from custodes.cli.tree import View
from custodes.policy.settings import Settings
from custodes.policy.trigger import applies
from custodes.signals import heeding_signals
from custodes.store import StoreError
from custodes.supervision.plans.checkpoints import PlanRow
from custodes.supervision.plans.plan_run import Begun, PlanEnd
from custodes.supervision.plans.plan_view import PlanView
from custodes.supervision.record.record_file import RecordFile

Ask = Callable[[Conversation, Begun], Awaitable[Sequence[Outcome] | PlanEnd]]
"""Asks for the work, and tells of a plan once it is on record."""


async def conduct(
    project: Path,
    name: str,
    ask: Ask,
    *,
    adapter: str = "",
    form: Format = "text",
    otlp: str = "",
    conversation: str = "",
) -> int:
    """Run ``ask`` in a conversation, a new one where none is named; show it, write its report, and return the
    exit code.

    A signal cancels the conversation: every child and all it started is gone, and every span of it is ended
    and sent, before this returns.
    """
    with exported(otlp):
        named = conversation or f"cli-{secrets.token_hex(8)}"
        return await _conduct(project, name, ask, adapter, form, named)


async def _conduct(project: Path, name: str, ask: Ask, adapter: str, form: Format, conversation: str) -> int:
    view = View(name, form)
    started = time.monotonic()
    end: Sequence[Outcome] | PlanEnd | None = None
    plan_run = ""

    def begun(row: PlanRow) -> None:
        nonlocal plan_run
        plan_run = row.id
        view.tell(f"plan run {plan_run}: if it is cut short, `cos run --resume {plan_run}` goes on with it")

    work = anyio.CancelScope()

    def cancel() -> None:
        if work.cancel_called:
            complain("cos: already ending every child; this takes a few seconds at most")
        work.cancel()

    async with heeding_signals(cancel) as ended_by:
        with work:
            async with view.shown():
                try:
                    async with (
                        Supervision(project=project, observer=view.observe) as supervision,
                        supervision.conversation(conversation, adapter=adapter) as parent,
                    ):
                        end = await ask(parent, begun)
                        conversation = parent.recorded_as
                finally:
                    view.close()

    cancelled = bool(ended_by) and end is None
    plan_end = end if isinstance(end, PlanEnd) else None
    cut_short = await _cut_short(project, plan_run) if plan_run and plan_end is None else None
    outcomes = end.outcomes if isinstance(end, PlanEnd) else end
    report = report_of(
        name,
        outcomes if outcomes is not None else view.tree.outcomes,
        time.monotonic() - started,
        cancelled=cancelled,
        conversation=conversation,
        spent=plan_end.spent if plan_end else None,
        plan_run=plan_run,
        uncertain=plan_end.uncertain if plan_end else cut_short.uncertain if cut_short else (),
        backtracks=plan_end.bundle.backtracks if plan_end else (),
    )
    if form == "json":
        write_json(report)
    else:
        write_report(report)
    if cancelled:
        return SIGNALLED + ended_by[0]
    return report.code


async def _cut_short(project: Path, plan_run: str) -> PlanView | None:
    """The plan as it stands on record; None where that cannot be read, which is no reason to tell nothing."""
    try:
        async with RecordFile(project) as file:
            return await file.plan(plan_run)
    except StoreError as error:
        complain(f"cos: note: {error}")
        return None


def session_adapter(project: Path, named: str) -> str:
    """The runtime the session itself runs on, looked at before anything begins; "" leaves it to routing.

    :raises CliError: supervision is off here, or the named adapter is no eligible one.
    :raises SettingsError: the settings file cannot be read.
    """
    state = Settings(project).read()
    if applies(state.policy, state.module_enabled, None) == "off":
        gate = (
            f"`{ENABLE}` turns it on" if state.module_enabled else "its settings say cognition.enabled: false"
        )
        raise CliError(f"supervision is off in {project}; {gate}", kind="disabled")
    registry = Registry.discover(project)
    if PROJECT_FILE in registry.errors:
        raise CliError(registry.errors[PROJECT_FILE], kind="adapters")
    for agent in registry.agents:
        if agent in registry.errors:
            complain(f"cos: note: {registry.errors[agent]}")
        elif (readiness := registry.readiness(agent)).code == "untrusted":  # a change of it ends the trust
            complain(f"cos: note: {readiness.reason}")
    if not named:
        return ""
    registry.descriptor(named)
    if named not in (eligible := registry.eligible()):
        known = f"eligible: {', '.join(eligible)}" if eligible else f"{PROJECT_FILE} names no agent"
        raise CliError(f"no eligible dispatch adapter for {named!r}; {known}", kind="adapters")
    return named
