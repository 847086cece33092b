"""``cos init``: the project's agents from what this machine has, and git kept clear of our files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from custodes.cli.options import FormatOption, ProjectDir, folder_at
from custodes.cli.output import DONE, CliError, paint, write, write_json
from custodes.paths import there

GITIGNORE = """\
# What Custodes keeps on this machine only. The settings and the adapters beside it belong in git.
*.db
*.db-*
*.db.*
*.lock
*.log
.*.new
"""
_HEADER = """\
# Which agent runtimes this project may give work to, the preferred one first.
# `cos supervision show` lists their models and whether they are ready.
"""


_NEXT = ("cos supervision enable", "cos supervision show", 'cos dispatch --role reviewer "…"')
_MARKS = {
    (True, True): ("found", "green"),
    (True, False): ("not ready", "yellow"),
    (False, False): ("not found", "dim"),
}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter this machine could use, or not, and by what that was seen. One that was found and is not
    ``ready`` wants what ``reason`` says first: a program named, its folder trusted, a key."""

    id: str
    label: str
    found: bool
    ready: bool
    reason: str


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    project: str
    wrote: tuple[str, ...]
    kept: tuple[str, ...]
    runtimes: tuple[Found, ...]
    unlisted: tuple[str, ...]
    """Found here, and not among the agents of a file that was kept."""
    next: tuple[str, ...]
    """The commands that come next; none where nothing here is ready to take work."""


def init(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Make a project ready, from the runtimes found here.

    It writes .coding-os.yaml. Our own files are kept out of git. Nothing is
    started and nothing overwritten; a second time changes nothing.
    """
    result = initialise(folder_at(project_dir))
    if format == "json":
        write_json(result)
        return DONE
    for runtime in result.runtimes:
        mark = paint(*_MARKS[runtime.found, runtime.ready])
        write(f"{runtime.id:<12} {mark}: {runtime.reason}")
    for name in result.wrote:
        write(f"wrote {name}")
    for name in result.kept:
        write(f"kept {name} as it is")
    if result.unlisted:
        write(f"found here and not among its agents: {', '.join(result.unlisted)}; to use one, add it there")
    if not result.next:
        write(
            "nothing here is ready to take work: install one of these and log in, or do what one of them says"
        )
    else:
        write("next:")
    for command in result.next:
        write(f"  {command}")
    return DONE


def initialise(project: Path) -> Initialised:
    """:raises CliError: a file cannot be written."""
    from custodes.adapters.agents import PROJECT_FILE, read_agents

    runtimes = look(project)
    agents = [runtime.id for runtime in runtimes if runtime.found]
    ids = "".join(f"  - {agent}\n" for agent in agents)
    wrote: list[str] = []
    kept: list[str] = []
    for name, text in (
        (".coding-os/.gitignore", GITIGNORE),
        (PROJECT_FILE, f"{_HEADER}agents:\n{ids}" if ids else f"{_HEADER}agents: []\n"),
    ):
        (wrote if _write_new(project / name, text) else kept).append(name)
    listed = read_agents(project)
    ready = any(runtime.ready and runtime.id in listed for runtime in runtimes)
    return Initialised(
        project=str(project),
        wrote=tuple(wrote),
        kept=tuple(kept),
        runtimes=runtimes,
        unlisted=tuple(runtime.id for runtime in runtimes if runtime.ready and runtime.id not in listed),
        next=_NEXT if ready else (),
    )


def look(project: Path) -> tuple[Found, ...]:
    """Every dispatchable adapter, and whether its runtime is here: its program (or its default model's) on
    PATH, or a variable of its endpoint set. One that needs neither is always there. Nothing is run.

    Those that run programs which somebody names come last: the first ready one is the session's default.
    """
    from custodes.adapters.registry import Registry

    found: list[Found] = []
    registry = Registry.discover(project)
    for descriptor in registry.descriptors.values():
        if not descriptor.can("dispatch"):
            continue
        default = descriptor.model(descriptor.default_model or "")
        program = (
            descriptor.cli.binary if descriptor.cli else default.argv[0] if default and default.argv else ""
        )
        if program:
            place = shutil.which(program)
            here, reason = place is not None, place or f"no program {program!r} on PATH"
        elif descriptor.endpoint is not None:
            variables = [v for v in (descriptor.endpoint.base_url_env, descriptor.endpoint.key_env) if v]
            given = [variable for variable in variables if os.environ.get(variable)]
            here = bool(given or descriptor.endpoint.base_url)
            reason = f"{' and '.join(given)} set" if given else f"neither {' nor '.join(variables)} is set"
            if not given and here:
                reason = f"its address is {descriptor.endpoint.base_url}"
        else:
            here, reason = True, "runs the programs that the project names"
        readiness = registry.readiness(descriptor.id)
        reason = readiness.reason if here and not readiness.ready else reason
        here = here and readiness.code != "no_extra"  # what its runtime is spoken to with is part of it
        ready = here and readiness.ready
        found.append(Found(id=descriptor.id, label=descriptor.label, found=here, ready=ready, reason=reason))
    programs = {one.id for one in registry.descriptors.values() if one.readiness.programs}
    return tuple(sorted(found, key=lambda one: (not one.found, one.id in programs, one.id)))


def _write_new(path: Path, text: str) -> bool:
    """Whether the file was written; one that is there, in whatever form, stays as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if there(path):
            return False
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", kind="files") from error
    return True
