"""``cos overseer``: the watch over providers that moves profiles off a sick one, and back."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import App, Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import (
    DONE,
    FAILED,
    SIGNALLED,
    CliError,
    complain,
    counted,
    plain,
    usage_error,
    write,
    write_json,
)
from custodes.signals import heeding_signals

if TYPE_CHECKING:
    from custodes.overseer.config import Config
    from custodes.overseer.incident import Incident

app = App(
    name="overseer",
    help="Watch providers; move profiles off a sick one, and back once it is well.",
    help_format="plaintext",
)

ConfigOption = Annotated[
    Path | None,
    Parameter(name="--config", help="supervisor.yaml; the one beside Hermes's configuration if not given."),
]
_DRY = Parameter(name="--dry-run", negative=(), help="Ask and decide; switch nothing and open no incident.")


@app.command
async def run(
    *,
    config: ConfigOption = None,
    dry_run: Annotated[bool, _DRY] = False,
    project_dir: ProjectDir = Path(),
) -> int:
    """Watch until told to end (Ctrl-C, TERM); one for a project.

    What it does is printed as it happens, and written to
    .coding-os/supervisor.log.
    """
    project, found = project_at(project_dir), _config(config, dry_run=dry_run)
    if not found.enabled:
        write("the overseer is disabled in its file (supervisor.enabled)")
        return DONE

    from custodes.overseer import daemon, notice
    from custodes.overseer.holder import AlreadyRunning

    def observer(event: str, incident: Incident) -> None:
        complain(f"{event}: {plain(notice.line(event, incident))}")

    def started() -> None:
        dry = ", a dry run" if found.dry_run else ""
        providers, profiles = len(found.providers), len(found.fallback_matrix)
        write(f"watching {counted(providers, 'provider')} for {counted(profiles, 'profile')}{dry}")

    watch = anyio.CancelScope()
    async with heeding_signals(watch.cancel) as ended_by:
        with watch:
            try:
                await daemon.run(project, found, observer=observer, started=started)
            except AlreadyRunning as error:
                raise CliError(str(error), kind="overseer") from None
    return SIGNALLED + ended_by[0] if ended_by and ended_by[0] == signal.SIGINT else DONE


@app.command
async def tick(
    *,
    config: ConfigOption = None,
    dry_run: Annotated[bool, _DRY] = False,
    quiet: Annotated[
        bool, Parameter(name="--quiet", negative=(), help="Print only what happened: nothing, on most ticks.")
    ] = False,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Watch once, for a cron: ask every provider, decide, switch, notify.

    Where `cos overseer run` is at it, this leaves it to that, and is done.
    """
    project, found = project_at(project_dir), _config(config, dry_run=dry_run)

    from custodes.overseer import daemon, notice
    from custodes.overseer.holder import AlreadyRunning

    if not found.enabled:
        return _said("the overseer is disabled in its file (supervisor.enabled)", format, quiet=quiet)
    try:
        done = await daemon.tick(project, found)
    except AlreadyRunning as error:
        return _said(str(error), format, quiet=quiet)
    if format == "json":
        write_json(done)
        return DONE
    for event in done.events:
        write(f"{event.event}: {plain(notice.line(event.event, event.incident))}")
    for decision in done.decisions if found.dry_run else ():
        if decision.action != "none":
            to = f" → {decision.to}" if decision.to else ""
            write(
                f"would {decision.action.replace('_', ' ')}: {decision.profile}{to} ({plain(decision.why)})"
            )
    if not quiet:
        conditions = [watch.condition.replace("_", " ") for watch in done.watches]
        stand = [f"{conditions.count(each)} {each}" for each in dict.fromkeys(conditions)]
        asked = f"{len(done.asked)} of {counted(len(done.watches), 'provider')}"
        write(f"asked {asked}: {', '.join(stand)}")
    return DONE


@app.command
async def status(
    *,
    config: ConfigOption = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show how providers and profiles stand, and what is open. Asks no provider and changes nothing."""
    project, found = project_at(project_dir), _config(config)

    from custodes.cli.overseer_words import incident_line, profile_line, provider_line
    from custodes.overseer import report
    from custodes.supervision.record.clock import now

    view = report.status(await report.known(project, found), found, now())
    if format == "json":
        write_json(view)
        return DONE
    write(f"overseer: {'not running' if view.pid is None else f'running, pid {view.pid}'} ({view.config})")
    for provider in view.providers:
        write(provider_line(provider))
    for profile in view.profiles:
        write(profile_line(profile))
    for incident in view.active:
        write(incident_line(incident))
    return DONE


@app.command
async def incidents(
    *,
    count: Annotated[int, Parameter(name=["--count", "-n"], help="How many of the newest.")] = 50,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the newest incidents, oldest first: what happened, what was done, who ended it and when."""
    if count < 1:
        raise usage_error(f"--count {count} shows nothing; 1 or more would work")
    project = project_at(project_dir)

    from custodes.cli.overseer_words import incident_line
    from custodes.overseer import report

    found = await report.incidents(project, count)
    if format == "json":
        write_json({"incidents": found})
        return DONE
    for incident in found:
        write(incident_line(incident))
    if not found:
        write("there were none")
    return DONE


@app.command
async def explain(
    profile: Annotated[str, Parameter(help="A PROFILE of the matrix.")],
    /,
    *,
    config: ConfigOption = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Say what would be done with a profile now, and why."""
    project, found = project_at(project_dir), _config(config)

    from custodes.adapters.errors import instead
    from custodes.cli.overseer_words import profile_line
    from custodes.overseer import report
    from custodes.supervision.record.clock import now

    if profile not in found.fallback_matrix:
        raise usage_error(
            f"there is no profile '{profile}' in {found.file}; {instead(profile, found.fallback_matrix)}"
        )
    known = await report.known(project, found)
    view = report.profile_view(known, profile, found, now())
    row = report.choices(profile, found, known.watches)
    if format == "json":
        write_json({"profile": view, "row": row})
        return DONE
    write(profile_line(view))
    for choice in row:
        here = "  now" if choice.choice == view.model else ""
        detail = f" ({plain(choice.detail)})" if choice.detail else ""
        write(f"  {choice.choice:<40} {choice.stands.replace('_', ' ')}{detail}{here}")
    return DONE


@app.command
async def switch(
    profile: Annotated[str, Parameter(help="A PROFILE of the matrix.")],
    target: Annotated[
        str,
        Parameter(
            help="provider/model, to be left there; primary, to be back on it; auto, where it belongs now."
        ),
    ],
    /,
    *,
    force: Annotated[
        bool, Parameter(name="--force", negative=(), help="Also to what is not well, or no list names.")
    ] = False,
    config: ConfigOption = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Switch a profile by hand. It is left on that model, until `primary` or `auto` gives it back.

    It is proven by reading back, and written to .coding-os/supervisor.log. Where
    `cos overseer run` is at it, that does it.
    """
    project, found = project_at(project_dir), _config(config)

    from custodes.overseer.by_hand import SwitchOrder, SwitchRefused
    from custodes.overseer.hand_switch import switch_by_hand

    order = SwitchOrder(profile=profile, target=target, by="cli", force=force)
    try:
        done = await switch_by_hand(project, found, order)
    except SwitchRefused as error:
        if error.kind == "unknown":
            raise usage_error(str(error)) from None
        raise CliError(str(error), kind="overseer") from None
    if format == "json":
        write_json(done)
        return DONE
    here = f"{plain(done.profile)}: "
    here += f"{plain(done.old_model)} → {done.new_model}" if done.moved else f"on {done.new_model} already"
    held = "held there until `primary` or `auto`" if done.held else "the overseer's"
    write(f"{here} ({held})")
    return DONE


@app.command
async def simulate(
    *,
    provider: Annotated[str, Parameter(name="--provider", help="Whose answer it is.")],
    status: Annotated[str, Parameter(name="--status", help="An HTTP status, or: timeout, refused.")],
    config: ConfigOption = None,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Say what every profile would do if a provider answered so. Asks nobody and changes nothing."""
    project, found = project_at(project_dir), _config(config)

    from custodes.adapters.errors import instead
    from custodes.overseer import report
    from custodes.overseer.probe import Answer
    from custodes.supervision.record.clock import now

    if provider not in found.providers:
        raise usage_error(
            f"there is no provider '{provider}' in {found.file}; {instead(provider, found.providers)}"
        )
    if status in ("timeout", "refused"):
        answer = Answer(seconds=found.health_timeout, trouble=status)  # type: ignore[arg-type]  # one of the two
    elif status.isdecimal() and 100 <= int(status) <= 599:
        answer = Answer(seconds=0.0, status=int(status), keyed=True)
    else:
        raise usage_error(f"--status {status} is neither an HTTP status nor 'timeout' or 'refused'")
    decisions = report.simulate(await report.known(project, found), found, provider, answer, now())
    if format == "json":
        write_json({"provider": provider, "status": status, "decisions": decisions})
        return DONE
    for decision in decisions:
        to = f" → {decision.to}" if decision.to else ""
        write(f"{decision.profile}: {decision.action.replace('_', ' ')}{to} ({plain(decision.why)})")
    return DONE


@app.command
def describe(
    *,
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Print the agent card."""
    import msgspec

    from custodes.overseer.card import CARD

    if format == "json":
        write_json(CARD)
        return DONE
    for name, value in msgspec.structs.asdict(CARD).items():
        words = (
            " ".join(value) if name == "command" else ", ".join(value) if isinstance(value, tuple) else value
        )
        write(f"{name}: {words or 'none (script only)'}")
    return DONE


@app.command
async def notify(
    *,
    test: Annotated[bool, Parameter(name="--test", negative=(), help="Send a test message to each.")] = False,
    config: ConfigOption = None,
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show the channels that incidents are told to; with --test, try each. Exit code 1 where one fails."""
    found = _config(config)

    from custodes.overseer.notify import NotDelivered, address, send

    results: dict[str, str] = {}
    for channel in found.notify.channels:
        try:
            url = address(channel, os.environ)
            if test:
                await send(url, "A test from cos overseer notify --test")
            results[channel.name] = "delivered" if test else "has an address"
        except NotDelivered as error:
            results[channel.name] = f"not {'delivered' if test else 'ready'}: {error}"
    if format == "json":
        write_json({"channels": results})
    for name, result in results.items() if format == "text" else ():
        write(f"{name}: {result}")
    if not results and format == "text":
        write("no channel is configured (supervisor.notify)")
    return FAILED if any(result.startswith("not ") for result in results.values()) else DONE


def _config(stated: Path | None, *, dry_run: bool = False) -> Config:
    import msgspec

    from custodes.overseer.reading import find_config, read_config

    found = read_config(find_config(stated, os.environ))
    return msgspec.structs.replace(found, dry_run=True) if dry_run else found


def _said(sentence: str, form: str, *, quiet: bool) -> int:
    if form == "json":
        write_json({"skipped": sentence})
    elif not quiet:
        write(sentence)
    return DONE
