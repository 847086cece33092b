"""``cos adapters``: what there is, whether it works, and the trust that a project's own adapters need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, FAILED, paint, plain, write, write_json

app = App(
    name="adapters",
    help="List and check the adapters there are, and trust a project's own.",
    help_format="plaintext",
)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """``agent``: .coding-os.yaml names it."""

    id: str
    label: str
    origin: str
    agent: bool
    ready: bool
    reason: str


@app.command(name="list")
def list_(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """List every adapter with where it comes from and whether it is ready. Runs nothing.

    Exit code 1 where an adapter's file is broken.
    """
    from custodes.adapters.registry import Registry

    registry = Registry.discover(project_at(project_dir))
    listed = []
    for name, descriptor in registry.descriptors.items():
        state = registry.readiness(name)
        listed.append(
            Listed(
                id=name,
                label=descriptor.label,
                origin=descriptor.origin,
                agent=name in registry.agents,
                ready=state.ready,
                reason=state.reason,
            )
        )
    if format == "json":
        write_json({"adapters": listed, "errors": dict(registry.errors), "warnings": registry.warnings})
    else:
        for one in listed:
            state_words = (
                paint("ready", "green") if one.ready else paint(f"unavailable: {plain(one.reason)}", "red")
            )
            named = "" if one.agent else "  (not in .coding-os.yaml::agents)"
            write(f"{plain(one.id):<12} {one.origin:<12} {state_words}{named}")
        for error in registry.errors.values():
            write(f"{paint('broken:', 'red')} {plain(error)}")
        for warning in registry.warnings:
            write(f"{paint('note:', 'yellow')} {plain(warning)}")
    return FAILED if registry.errors else DONE


@app.command
async def check(
    adapter: Annotated[str, Parameter(help="The adapter's id.")],
    /,
    *,
    live: Annotated[
        bool,
        Parameter(
            name="--live", negative=(), help="Also ask the runtime one small question; it costs tokens."
        ),
    ] = False,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Check one adapter: is its program here and new enough, is it ready, what can it not do.

    Its module is imported and its version command run where it is trusted. --live
    goes past the breaker and changes no health. Exit code 1 where something must
    be mended first.
    """
    from custodes.adapters.check import check as look
    from custodes.adapters.registry import Registry

    project = project_at(project_dir)
    registry = Registry.discover(project)
    found = await look(registry, adapter)
    asked = None
    if live:
        from custodes.supervision.live_check import live_check

        asked = await live_check(registry, adapter, project)
    if format == "json":
        write_json({**msgspec.structs.asdict(found), "live": asked})
    else:
        write(f"{paint(plain(found.id), 'bold')}  {plain(found.label)}  ({found.origin})")
        if found.program:
            minimum = f", at least {plain(found.minimum)} is needed" if found.minimum else ""
            write(f"  program  {plain(found.program)}, version {plain(found.version or 'unknown')}{minimum}")
        write(f"  can      {', '.join(found.capabilities) or 'nothing'}")
        for name, meaning in found.lacks.items():
            write(f"  {paint('lacks', 'dim')}    {name}: {meaning}")
        for problem in found.problems:
            write(f"{paint('mend:', 'red')} {plain(problem)}")
        if asked is not None and asked.failure is not None:
            write(f"{paint('live:', 'red')} {asked.failure.category}: {plain(asked.failure.reason)}")
        elif asked is not None:
            write(f"{paint('live:', 'green')} answered in {asked.seconds:.1f} s: {plain(asked.summary)}")
        elif not found.problems:
            write(paint("nothing must be mended", "green"))
    return FAILED if found.problems or (asked is not None and asked.failure is not None) else DONE


@app.command
def trust(
    adapter: Annotated[str, Parameter(help="The adapter's id, the name of its folder.")],
    /,
    *,
    undo: Annotated[bool, Parameter(name="--undo", negative=(), help="Take the trust back.")] = False,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Trust a project's own adapter (.coding-os/adapters/ID). Read it first.

    It may name any program or address. A change of any of its files ends the
    trust.
    """
    from custodes.adapters.registry import Registry

    registry = Registry.discover(project_at(project_dir))
    if undo:
        was = registry.distrust(adapter)
        message = f"{adapter} is no longer trusted" if was else f"{adapter} was not trusted"
        document: dict[str, object] = {"adapter": adapter, "trusted": False, "was_trusted": was}
    else:
        digest = registry.trust(adapter)
        message = f"{adapter} is trusted as it stands now ({digest})"
        document = {"adapter": adapter, "trusted": True, "digest": digest}
    if format == "json":
        write_json(document)
    else:
        write(message)
    return DONE
