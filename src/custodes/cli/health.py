"""``cos health``: how each model pool stands, and an operator's way to clear one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import msgspec
from cyclopts import App, Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import (
    CLEAR_SCREEN,
    DONE,
    FAILED,
    Format,
    counted,
    is_terminal,
    paint,
    plain,
    usage_error,
    write,
    write_json,
)

if TYPE_CHECKING:
    from custodes.supervision.pools.health_report import HealthReport
    from custodes.supervision.pools.health_view import PoolView

app = App(
    name="health",
    help="Show how each model pool stands, and clear one that is known to be well again.",
    help_format="plaintext",
)

_WATCH_S = 1.0
_STYLES = {"healthy": "green", "cooling_down": "red", "half_open": "yellow"}


@app.command
async def show(
    *,
    watch: Annotated[
        bool, Parameter(name="--watch", negative=(), help="Show it again each second, until Ctrl-C.")
    ] = False,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Show every pool that was ever limited: its state, and the seconds until it may let somebody in.

    Reads the project's own file; asks no provider and changes nothing.
    """
    if watch and format == "json":
        raise usage_error("--watch is for people; with --format json ask again instead")
    project = project_at(project_dir)

    from custodes.adapters.registry import Registry
    from custodes.supervision.pools.health_file import HealthFile
    from custodes.supervision.pools.health_report import report_of

    async with HealthFile(project) as file:
        while True:
            report = report_of(await file.read(), Registry.discover(project))
            if format == "json":
                write_json(report)
                return DONE
            text = "\n".join(_lines(report))
            write(CLEAR_SCREEN + text if watch and is_terminal(sys.stdout) else text)
            if not watch:
                return DONE
            await anyio.sleep(_WATCH_S)


@app.command
async def clear(
    target: Annotated[str, Parameter(help="ADAPTER for all its pools, or one pool as ADAPTER:BUCKET.")],
    /,
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Clear a cooldown, or an adapter's unavailability, before its time.

    It overrides a safety breaker, so it is written to
    .coding-os/extensions-audit.log. Exit code 1 where there is nothing of that
    name to clear.
    """
    project = project_at(project_dir)

    from custodes.supervision.pools.health_file import clear_in_file

    cleared = await clear_in_file(project, target, "cli")
    if format == "json":
        write_json({"target": target, "cleared": cleared})
    elif cleared:
        write(f"cleared {', '.join(plain(name) for name in cleared)}")
    else:
        write(f"nothing of '{plain(target)}' was limited; `cos health show` lists what is")
    return DONE if cleared else FAILED


def show_with_health(project: Path, form: Format) -> int:
    """`cos supervision show --health`: the policy, and below it how the pools stand."""
    from custodes.cli.overview import write_overview
    from custodes.policy.overview import overview_of
    from custodes.supervision.pools.health_report import health_report

    overview = overview_of(project)
    report = anyio.run(health_report, project, backend="trio")
    if form == "json":
        write_json({**msgspec.structs.asdict(overview), "health": report})
    else:
        write_overview(overview)
        write()
        for line in _lines(report):
            write(line)
    return DONE


def _lines(report: HealthReport) -> list[str]:
    lines: list[str] = []
    for adapter in report.adapters:
        name = paint(plain(adapter.adapter), "bold")
        if adapter.unavailable is not None:  # whatever its pools would take
            lines.append(f"{name}  {paint('unavailable', 'red')}: {plain(adapter.unavailable.reason)}")
        else:
            state = adapter.state.replace("_", " ")
            soonest = f", the soonest in {adapter.recovery_s} s" if adapter.recovery_s else ""
            lines.append(f"{name}  {paint(state, _STYLES[adapter.state])}{soonest}")
        lines.extend(_pool_line(pool) for pool in report.pools if pool.adapter == adapter.adapter)
    return lines or ["no agents are configured and no pool was ever limited"]


def _pool_line(pool: PoolView) -> str:
    parts = [f"  {plain(pool.pool):<28} {paint(pool.state.replace('_', ' '), _STYLES[pool.state])}"]
    if pool.lease_remaining_s:
        parts.append(f"its probe runs, {pool.lease_remaining_s} s at most")
    elif pool.state == "half_open":
        parts.append("the next to ask is its probe")
    elif pool.recovery_s:
        parts.append(f"recovers in {pool.recovery_s} s")
    if pool.failure_count:
        parts.append(f"{counted(pool.failure_count, 'limit')} in a row")
    if pool.mark_remaining_s:
        parts.append(f"its provider was overloaded, {pool.mark_remaining_s} s more")
    if pool.reason:
        parts.append(plain(pool.reason))
    return "  ".join(parts)
