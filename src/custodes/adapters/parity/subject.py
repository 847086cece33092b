"""The adapter the contract is run on: by its id, or by the folder it stands in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from custodes.adapters import trust
from custodes.adapters.descriptor import Descriptor, describe
from custodes.adapters.errors import AdapterError
from custodes.adapters.loading import load_module, load_runtime
from custodes.adapters.manifest import read_mapping
from custodes.adapters.parity.cases import CASES
from custodes.adapters.parity.stage import Stage
from custodes.adapters.port import Runtime
from custodes.adapters.registry import Registry
from custodes.adapters.sources import FILE

Arranged = Stage | AbstractContextManager[Stage]
MODULE = "parity.py"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """``make`` gives its runtime for a descriptor, ``arrange`` is its ``parity.py``'s."""

    descriptor: Descriptor
    make: Callable[[Descriptor], Runtime]
    arrange: Callable[[str, Stage], Arranged]

    @property
    def id(self) -> str:
        return self.descriptor.id


def find_subject(named: str, project: Path) -> Subject:
    """The adapter of that id in a project (or built in, or installed), else the one in that folder.

    A folder that is named is run without being trusted: who names it means it.

    :raises AdapterError: there is none, it is broken or untrusted, or has no ``parity.py`` that can be used.
    """
    folder = Path(named).parent if Path(named).name == FILE else Path(named)
    if (folder / FILE).is_file() and ("/" in named or named not in Registry.discover(project).descriptors):
        folder = folder.resolve()
        found, _ = describe(read_mapping(folder / FILE), file=folder / FILE, default_id=folder.name)
        return _subject(msgspec.structs.replace(found, folder=str(folder), origin="project"))
    if "/" in named:
        raise AdapterError(f"{folder} holds no {FILE}, so it is no adapter's folder")
    registry = Registry.discover(project)
    registry.runtime(named)  # it is one, can be imported, and is trusted where it must be
    return _subject(registry.descriptor(named))


def _subject(found: Descriptor) -> Subject:
    folder = Path(found.folder)
    package = f"custodes.adapters.{found.id}" if found.origin == "builtin" else ""
    key = "" if package else f"parity_{trust.folder_digest(folder).removeprefix('sha256:')}"
    if not (folder / MODULE).is_file():
        raise AdapterError(f"adapter '{found.id}': {folder / MODULE} does not exist. {_HOW}")
    try:
        module: Any = load_module(folder / MODULE, package=package, key=key)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise AdapterError(f"adapter '{found.id}': {folder / MODULE} cannot be imported: {said}") from error
    if not callable(getattr(module, "arrange", None)):
        raise AdapterError(f"adapter '{found.id}': {folder / MODULE} has no function arrange(). {_HOW}")

    def make(descriptor: Descriptor) -> Runtime:
        return load_runtime(descriptor, package=package, key=key)

    return Subject(descriptor=found, make=make, arrange=module.arrange)


_HOW = (
    f"It says how to make the runtime fail: arrange(case, stage) puts the runtime, or what stands in for it, "
    f"into place for one of 'success', {', '.join(map(repr, CASES))}. docs/adapters.md shows one"
)
