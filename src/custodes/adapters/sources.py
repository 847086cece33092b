"""Where adapters stand: the built-ins, a project's own folder, installed packages. Found, never imported."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from custodes.adapters.errors import DescriptorError
from custodes.adapters.manifest import Identity, identity

ENTRY_POINT_GROUP = "custodes.adapters"
PROJECT_FOLDER = Path(".coding-os") / "adapters"
FILE = "adapter.yaml"

Origin = Literal["builtin", "project", "entry_point"]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One ``adapter.yaml``. ``package`` is the import name of its folder, where it has one."""

    id: str
    origin: Origin
    folder: Path
    package: str = ""
    label: str = ""
    """How a person knows it: the distribution of an entry point, else the folder."""

    @property
    def file(self) -> Path:
        return self.folder / FILE


@cache
def builtin_sources() -> tuple[Source, ...]:
    """Looked for once: what is installed is what is running."""
    home = Path(__file__).parent
    return tuple(
        Source(id=folder.name, origin="builtin", folder=folder, package=f"{__package__}.{folder.name}")
        for folder in _folders(str(home))
    )


def project_sources(project: Path) -> tuple[Source, ...]:
    """The folders under the project's ``.coding-os/adapters``; one without an ``adapter.yaml`` is none."""
    return tuple(
        Source(id=folder.name, origin="project", folder=folder)
        for folder in _folders(f"{project}/{PROJECT_FOLDER}")
    )


def _folders(parent: str) -> Iterator[Path]:
    """By plain strings: it is asked at every admission, where pathlib would be most of the cost."""
    try:
        names = sorted(os.listdir(parent))  # noqa: PTH208
    except OSError:
        return
    for name in names:
        if os.path.lexists(f"{parent}/{name}/{FILE}"):
            yield Path(parent, name)


def entry_point_sources() -> tuple[tuple[Source, ...], dict[str, str]]:
    """The adapters that installed packages bring, and what is wrong with the others, by name.

    An entry point's value is the package that holds ``adapter.yaml``. Its place is asked of the import
    system without importing it: discovery runs no code of a package.
    """
    sources: list[Source] = []
    errors: dict[str, str] = {}
    for entry in sorted(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda e: e.name):
        label = f"{entry.dist.name if entry.dist else 'unknown'}:{entry.name}"
        try:
            folder = _locate(entry.module)
        except DescriptorError as error:
            errors[label] = (
                f"entry point '{entry.name} = {entry.value}' of {label.partition(':')[0]}: {error}"
            )
            continue
        sources.append(
            Source(id=entry.name, origin="entry_point", folder=folder, package=entry.module, label=label)
        )
    return tuple(sources), errors


def _locate(module: str) -> Path:
    """The folder of a package by the finders alone. `importlib.util.find_spec` would import its parents."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise DescriptorError(f"'{top}' cannot be found") from error
    name = top
    for part in rest:
        name = f"{name}.{part}"
        where = spec.submodule_search_locations if spec else None
        spec = importlib.machinery.PathFinder.find_spec(name, list(where)) if where else None
    for place in (spec.submodule_search_locations if spec else None) or ():
        if (Path(place) / FILE).is_file():
            return Path(place)
    if spec is None:
        raise DescriptorError(f"package '{module}' cannot be found")
    raise DescriptorError(f"package '{module}' holds no {FILE}")


def import_path_identity() -> tuple[tuple[str, ...], tuple[Identity | None, ...]]:
    """Changes when a package may have been installed or removed: what the entry points are cached by."""
    return tuple(sys.path), tuple([identity(place or ".") for place in sys.path])
