"""``cos doctor``: what is wrong with a project's set-up, each finding with what would mend it."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio.to_thread
import msgspec

from custodes.cli.options import FormatOption, ProjectDir, project_at
from custodes.cli.output import DONE, FAILED, paint, plain, write, write_json


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``about`` is what was looked at: ``settings``, ``adapters``, ``store``, ``scopes`` or ``program``. A
    ``note`` is worth knowing, and nothing wrong."""

    about: str
    problem: str
    note: bool = False


async def doctor(
    *,
    project_dir: ProjectDir = Path(),
    format: FormatOption = "text",  # noqa: A002 - the option's word
) -> int:
    """Check settings, adapters and database, and change nothing.

    Nothing is run. Exit code 1 where something is wrong; what is only worth
    knowing is a note.
    """
    project = project_at(project_dir)
    store = await anyio.to_thread.run_sync(_store, project) or await _rows(project)
    if not store:
        store = [*await _waiting(project), *await _scopes(project)]
    findings = [*_settings(project), *_adapters(project), *store, *_program()]
    wrong = [finding for finding in findings if not finding.note]
    if format == "json":
        write_json({"findings": findings})
    else:
        for finding in findings:
            about = paint("note:", "yellow") if finding.note else paint(f"{finding.about}:", "red")
            write(f"{about} {plain(finding.problem)}")
        if not wrong:
            write("settings, adapters, store and scopes: nothing is wrong")
    return FAILED if wrong else DONE


def _settings(project: Path) -> list[Finding]:
    from custodes.adapters.registry import Registry
    from custodes.policy.catalog import Catalog
    from custodes.policy.settings import Settings, SettingsError

    settings = Settings(project)
    try:
        settings.read()
        stale = settings.stale(Catalog.of(Registry.discover(project), readiness=False))
    except SettingsError as error:
        return [Finding(about="settings", problem=str(error))]
    return [Finding(about="settings", problem=str(problem)) for problem in stale]


def _is_on(project: Path) -> bool:
    """Whether work would be supervised here. Settings that cannot be read are told elsewhere."""
    from custodes.policy.settings import Settings, SettingsError
    from custodes.policy.trigger import applies

    try:
        state = Settings(project).read()
    except SettingsError:
        return False
    return applies(state.policy, state.module_enabled, None) != "off"


def _adapters(project: Path) -> list[Finding]:
    from custodes.adapters.agents import PROJECT_FILE
    from custodes.adapters.registry import Registry

    registry = Registry.discover(project)
    problems = [*registry.errors.values(), *registry.warnings]
    if not problems and not registry.eligible():
        words = (
            f"no agent is named under `agents` in {PROJECT_FILE}, so that nothing can be given work; "
            "`cos init` says which are found here, and writes that file where there is none"
        )
        return [Finding(about="adapters", problem=words, note=not _is_on(project))]
    found = {agent: registry.readiness(agent) for agent in registry.eligible()}
    one_is_ready = any(readiness.ready for readiness in found.values())
    return [Finding(about="adapters", problem=problem) for problem in problems] + [
        Finding(about="adapters", problem=f"{agent} is not ready: {readiness.reason}", note=one_is_ready)
        for agent, readiness in found.items()
        if not readiness.ready
    ]


def _program() -> list[Finding]:
    """``cos`` is also the script of the project that this one's formats come from; ``custodes`` never is."""
    found = shutil.which("cos")
    if found is None:
        return []
    try:
        with Path(found).open("rb") as script:
            if b"custodes" in script.read(4096):
                return []
    except OSError:
        return []
    problem = f"`cos` is {found}, which is another program's; `custodes` is this one under its other name"
    return [Finding(about="program", problem=problem, note=True)]


def _store(project: Path) -> list[Finding]:
    from custodes.store import integrity
    from custodes.supervision.record.schema import DATABASE, MIGRATIONS

    return [Finding(about="store", problem=problem) for problem in integrity(project / DATABASE, MIGRATIONS)]


async def _rows(project: Path) -> list[Finding]:
    from custodes.supervision.record.schema import DATABASE
    from custodes.supervision.unreadable import unreadable

    return [
        Finding(
            about="store",
            problem=f"{told}: what asks for it fails; with {DATABASE} moved away, an empty one is begun",
        )
        for told in await unreadable(project)
    ]


async def _waiting(project: Path) -> list[Finding]:
    """What is not asked again until a person has done something."""
    from custodes.adapters.registry import Registry
    from custodes.supervision.pools.health_report import health_report

    registry = Registry.discover(project)
    agents = registry.eligible()
    adapters = [one for one in (await health_report(project)).adapters if one.adapter in agents]
    another = any(one.unavailable is None and registry.readiness(one.adapter).ready for one in adapters)
    return [
        Finding(about="adapters", problem=one.unavailable.reason, note=another)
        for one in adapters
        if one.unavailable is not None
    ]


async def _scopes(project: Path) -> list[Finding]:
    """What is held by nobody who lives: the next work that wants it ends what is left, and takes it over."""
    from custodes.supervision.writers.scope_file import read_scopes

    return [
        Finding(
            about="scopes",
            problem=f"{', '.join(view.places)} is held by run {view.run_id}: {view.overridden}. The next "
            "work that wants it takes it over once that run is proven gone; "
            f"`cos scopes release {view.number}` releases it unproven",
        )
        for view in await read_scopes(project)
        if view.state == "held" and (view.owner == "dead" or view.left)
    ]
