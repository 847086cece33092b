"""An adapter's modules, imported once. The only place where an adapter's code begins to run.

A project's own module is always made from its source, without writing or reading compiled files in its
folder: what runs is what was hashed when the person trusted it, and running it does not change the hash.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.errors import AdapterError
from custodes.adapters.port import FindTranscript, ProfileSwitch, Runtime, Transcript

_PREFIX = "_custodes_project_adapter_"
_lock = threading.Lock()


class _SourceOnly(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader protocol's signature
        return self.source_to_code(self.get_data(self.path), self.path)


class _ProjectFinder(importlib.abc.MetaPathFinder):
    """Siblings of a project's module (``from . import helper``), from source as well."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,  # noqa: ARG002 - the finder protocol's signature
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or not path:
            return None
        base = Path(path[0]) / fullname.rpartition(".")[2]
        for file, places in ((base / "__init__.py", [str(base)]), (base.with_suffix(".py"), None)):
            if file.is_file():
                return _spec(fullname, file, places)
        return None


def _spec(name: str, file: Path, places: list[str] | None) -> importlib.machinery.ModuleSpec:
    loader = _SourceOnly(name, str(file))
    spec = importlib.util.spec_from_file_location(
        name, file, loader=loader, submodule_search_locations=places
    )
    if spec is None:
        raise ImportError(f"{file} cannot be loaded", name=name)
    return spec


_FINDER = _ProjectFinder()


def load_runtime(descriptor: Descriptor, *, package: str, key: str) -> Runtime:
    """Import the descriptor's dispatch module and make its Runtime.

    :param package: the import name of its folder; ``""`` for a project's own folder.
    :param key: tells one content of a project's folder from the next, so that a changed and newly trusted
        one is not answered with the old module.
    :raises AdapterError: no module, a module that fails to import, or one without ``runtime(descriptor)``.
    """
    name = descriptor.runtime_entrypoints.dispatch
    if name is None or not descriptor.can("dispatch"):
        raise AdapterError(f"adapter '{descriptor.id}' does not declare 'dispatch'")
    file = Path(descriptor.folder) / name
    make = _function(descriptor, "dispatch", file, "runtime(descriptor)", package=package, key=key)
    try:
        runtime: Runtime = make(descriptor)
    except (Exception, SystemExit) as error:
        raise AdapterError(
            f"adapter '{descriptor.id}': {file}: runtime(descriptor) failed: {_said(error)}"
        ) from error
    if not callable(getattr(runtime, "dispatch", None)):
        raise AdapterError(f"adapter '{descriptor.id}': {file}: what runtime() returns has no dispatch()")
    return runtime


def load_profile_switch(descriptor: Descriptor, *, package: str, key: str) -> ProfileSwitch:
    """Import the descriptor's profile module and make its ProfileSwitch. ``package`` and ``key`` as for
    `load_runtime`.

    :raises AdapterError: the capability is not declared; no module, one that fails to import or to make one.
    """
    name = descriptor.runtime_entrypoints.profile_switch
    if name is None or not descriptor.can("profile_switch"):
        raise AdapterError(f"adapter '{descriptor.id}' does not declare 'profile_switch'")
    file, says = Path(descriptor.folder) / name, "profile_switch(descriptor)"
    make = _function(descriptor, "profile_switch", file, says, package=package, key=key)
    try:
        switch: ProfileSwitch = make(descriptor)
    except (Exception, SystemExit) as error:
        raise AdapterError(f"adapter '{descriptor.id}': {file}: {says} failed: {_said(error)}") from error
    return switch


def load_transcript(descriptor: Descriptor, *, package: str, key: str) -> FindTranscript | None:
    """Import the descriptor's transcript module; None where it names none. ``package`` and ``key`` as for
    `load_runtime`.

    What it finds is checked: a call of it raises AdapterError too, whatever that module raises or returns.

    :raises AdapterError: no module, one that fails to import, or one without ``transcript()``.
    """
    name = descriptor.runtime_entrypoints.transcript
    if name is None:
        return None
    file = Path(descriptor.folder) / name
    says = "transcript(native_id, environ)"
    find = _function(descriptor, "transcript", file, says, package=package, key=key)

    def transcript(native_id: str, environ: Mapping[str, str]) -> Transcript:
        try:
            found = find(native_id, environ)
        except (Exception, SystemExit) as error:
            raise AdapterError(f"adapter '{descriptor.id}': {file}: {says} failed: {_said(error)}") from error
        if not isinstance(found, Transcript):
            raise AdapterError(
                f"adapter '{descriptor.id}': {file}: what transcript() returns is no Transcript"
            )
        return found

    return transcript


def load_module(file: Path, *, package: str, key: str) -> ModuleType:
    """One module of an adapter's folder, imported once; ``package`` and ``key`` as for `load_runtime`.

    :raises Exception: whatever its import raises.
    """
    with _lock:
        return importlib.import_module(f"{package}.{file.stem}") if package else _import_file(file, key)


def _function(
    descriptor: Descriptor, entrypoint: str, file: Path, says: str, *, package: str, key: str
) -> Callable[..., Any]:
    """A module's function, by the signature ``says``. :raises AdapterError: it has none."""
    whose = f"adapter '{descriptor.id}'"
    if not file.is_file():
        raise AdapterError(f"{whose}: runtime_entrypoints.{entrypoint}: {file} does not exist")
    try:
        module = load_module(file, package=package, key=key)
    except (Exception, SystemExit) as error:
        raise AdapterError(f"{whose}: {file} cannot be imported: {_said(error)}") from error
    function: Callable[..., Any] | None = getattr(module, says.partition("(")[0], None)
    if not callable(function):
        raise AdapterError(f"{whose}: {file} has no function {says}")
    return function


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _import_file(file: Path, key: str) -> ModuleType:
    package = f"{_PREFIX}{key}"
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if package not in sys.modules:
        spec = importlib.machinery.ModuleSpec(package, None, is_package=True)
        spec.submodule_search_locations = [str(file.parent)]
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{package}.{file.stem}")
