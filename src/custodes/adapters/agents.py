"""``.coding-os.yaml::agents``: which adapters this project may use, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from custodes.adapters.errors import DescriptorError
from custodes.adapters.manifest import read_mapping
from custodes.paths import there

PROJECT_FILE = ".coding-os.yaml"


def read_agents(project: Path) -> tuple[str, ...]:
    """The ids in the project's order, each once; ``()`` where the project has no such file or no ``agents``.

    Both of YAML's shapes are read: a list of ids (``- codex`` or ``- {id: codex}``) and a mapping
    (``codex: true``, ``codex: {enabled: false}``). Every other key of the file belongs to others.

    :raises DescriptorError: the file is there and cannot be read, or ``agents`` is neither shape.
    """
    file = project / PROJECT_FILE
    try:
        if not there(file):
            return ()
    except OSError as error:
        raise DescriptorError(f"{file}: cannot be read: {error.strerror}") from error
    agents = read_mapping(file).get("agents")
    if agents is None:
        return ()
    if isinstance(agents, str):
        agents = [agents]
    if isinstance(agents, dict):
        agents = [{"id": name, **_options(file, name, value)} for name, value in agents.items()]
    if not isinstance(agents, list):
        raise DescriptorError(f"{file}: agents: must be a list of adapter ids, as [codex, command]")
    return tuple(
        dict.fromkeys(name for number, entry in enumerate(agents) if (name := _id(file, number, entry)))
    )


def _options(file: Path, name: str, value: Any) -> dict[str, Any]:
    if value is None or isinstance(value, bool):
        return {"enabled": value is not False}
    if isinstance(value, dict):
        return {"enabled": value.get("enabled", True)}
    raise DescriptorError(f"{file}: agents.{name}: must be true, false or a mapping with 'enabled'")


def _id(file: Path, number: int, entry: Any) -> str | None:
    """The entry's id, or None where it is switched off."""
    enabled = True
    if isinstance(entry, dict):
        enabled = entry.get("enabled", True)
        entry = entry.get("id")
    if not isinstance(entry, str) or not entry.strip():
        raise DescriptorError(f"{file}: agents[{number}]: must be an adapter's id (text)")
    if not isinstance(enabled, bool):
        raise DescriptorError(f"{file}: agents[{number}].enabled: must be true or false")
    return entry.strip() if enabled else None
