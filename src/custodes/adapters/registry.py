"""The adapters of one project: found, read, merged and checked once; asked as often as one likes.

Discovery reads files and runs nothing. It is cached by the identity of every file it looked at, so
asking again costs stats alone. Trust and readiness are live, since both can change under a frozen
descriptor; they too cost stats alone where nothing changed. A broken adapter is an entry in `errors` and
never in the way of the others.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from custodes.adapters import trust as trusting
from custodes.adapters.agents import PROJECT_FILE, read_agents
from custodes.adapters.descriptor import MODULES, Descriptor, describe
from custodes.adapters.errors import AdapterError, DescriptorError, UntrustedError, instead, near_miss
from custodes.adapters.loading import load_profile_switch, load_runtime, load_transcript
from custodes.adapters.manifest import Identity, identity, read_mapping
from custodes.adapters.port import ProfileSwitch, Runtime, Transcript
from custodes.adapters.readiness import ReadinessState, readiness_of
from custodes.adapters.sources import (
    FILE,
    PROJECT_FOLDER,
    Source,
    builtin_sources,
    entry_point_sources,
    import_path_identity,
    project_sources,
)

_Stamp = tuple[Any, ...]
_lock = threading.RLock()
_registries: dict[Path, tuple[_Stamp, Registry]] = {}
_mappings: dict[Path, tuple[Identity, dict[str, Any]]] = {}
_installed: tuple[_Stamp, tuple[tuple[Source, ...], dict[str, str]]] | None = None


class Registry:
    """What `discover` found. Safe to share between tasks and threads."""

    def __init__(
        self,
        project: Path,
        *,
        agents: tuple[str, ...],
        descriptors: Mapping[str, Descriptor],
        errors: Mapping[str, str],
        warnings: tuple[str, ...],
        packages: Mapping[str, str],
        digests: Mapping[str, str],
    ) -> None:
        self.project = project
        self.agents = agents
        """``.coding-os.yaml::agents``, in order; empty where the file is missing."""
        self.descriptors: Mapping[str, Descriptor] = MappingProxyType(dict(descriptors))
        self.errors: Mapping[str, str] = MappingProxyType(dict(errors))
        """What cannot be used and why, by adapter id (``.coding-os.yaml`` for that file itself)."""
        self.warnings = warnings
        self._packages = packages
        self._digests = digests
        self._runtimes: dict[str, tuple[str, Runtime]] = {}
        self._trust: dict[str, tuple[_Stamp, bool]] = {}
        self._lock = threading.RLock()

    @staticmethod
    def discover(project: Path) -> Registry:
        """A project's registry. Never raises for a broken adapter or project file: see `errors`."""
        with _lock:
            if project not in _registries:  # its keys are real paths
                project = project.resolve()
            own = project_sources(project)
            stamp = _stamp(project, own)
            known = _registries.get(project)
            if known and known[0] == stamp:
                return known[1]
            registry = _read(project, own)
            _registries[project] = (stamp, registry)
            return registry

    def eligible(self) -> tuple[str, ...]:
        """The configured adapters that declare ``dispatch``, in the project's order, ready or not."""
        return tuple(
            agent
            for agent in self.agents
            if (found := self.descriptors.get(agent)) is not None and found.can("dispatch")
        )

    def provider(self, adapter: str) -> str:
        """What an adapter declares as its provider; "" where it declares none, or is gone."""
        found = self.descriptors.get(adapter)
        return found.provider if found is not None else ""

    def descriptor(self, adapter: str) -> Descriptor:
        """:raises AdapterError: no such adapter (with the near miss), or what is wrong with it."""
        if adapter in self.descriptors:
            return self.descriptors[adapter]
        if adapter in self.errors:
            raise DescriptorError(self.errors[adapter])
        hint = instead(adapter, sorted(self.descriptors))
        raise AdapterError(f"there is no adapter '{adapter}'; {hint}")

    def readiness(self, adapter: str) -> ReadinessState:
        """Whether it could be called now. Stats only: no program is run and nothing imported."""
        try:
            found = self.descriptor(adapter)
            digest = self._require_trust(found)
        except UntrustedError as error:
            return ReadinessState(ready=False, code="untrusted", reason=f"untrusted: {error}")
        except AdapterError as error:
            return ReadinessState(ready=False, code="error", reason=str(error))
        return readiness_of(found, os.environ, digest)

    def runtime(self, adapter: str) -> Runtime:
        """The adapter's runtime, its dispatch module imported at the first call.

        :raises AdapterError: unknown, broken or untrusted; then nothing of it was imported.
        """
        found = self.descriptor(adapter)
        digest = self._require_trust(found)
        with self._lock:
            known = self._runtimes.get(adapter)
            if known and known[0] == digest:
                return known[1]
            runtime = load_runtime(found, package=self._packages.get(adapter, ""), key=_key(digest))
            self._runtimes[adapter] = (digest, runtime)
            return runtime

    def transcript(self, adapter: str, native_id: str) -> Transcript:
        """Where a thread of its runtime stands here, and the command that goes on with it; an empty one
        where the adapter names no ``transcript`` module. Looked up anew at every call.

        :raises AdapterError: unknown, broken or untrusted; then nothing of it was imported.
        """
        found = self.descriptor(adapter)
        digest = self._require_trust(found)
        find = load_transcript(found, package=self._packages.get(adapter, ""), key=_key(digest))
        return Transcript() if find is None else find(native_id, os.environ)

    def profile_switch(self, adapter: str) -> ProfileSwitch:
        """What sets the models of its runtime's profiles, made anew at every call.

        :raises AdapterError: unknown, broken, untrusted, or without that capability.
        """
        found = self.descriptor(adapter)
        digest = self._require_trust(found)
        return load_profile_switch(found, package=self._packages.get(adapter, ""), key=_key(digest))

    def trust(self, adapter: str) -> str:
        """Trust the project's own adapter as it stands now; the digest that is kept.

        :raises AdapterError: it is not the project's own, is broken, or cannot be hashed.
        """
        folder = self._own_folder(adapter)
        if adapter in self.errors:
            raise DescriptorError(self.errors[adapter])
        return trusting.trust(folder)

    def distrust(self, adapter: str) -> bool:
        """Whether it had been trusted. :raises AdapterError: it is not the project's own."""
        return trusting.distrust(self._own_folder(adapter))

    def _own_folder(self, adapter: str) -> Path:
        folder = self.project / PROJECT_FOLDER / adapter
        if adapter in {source.id for source in project_sources(self.project)}:
            return folder
        if adapter in self.descriptors:
            raise AdapterError(f"adapter '{adapter}' is not the project's own, so it needs no trust")
        raise AdapterError(f"there is no adapter '{adapter}' in {self.project / PROJECT_FOLDER}")

    def _require_trust(self, found: Descriptor) -> str:
        """The trusted digest of a project's folder; "" for an adapter that needs none."""
        if found.origin != "project":
            return ""
        folder = self.project / PROJECT_FOLDER / found.id
        digest = self._digests[found.id]
        stamp = (identity(trusting.trust_file()), trusting.signature(folder))
        with self._lock:
            known = self._trust.get(found.id)
            if known is None or known[0] != stamp:
                # What was read must be what is trusted: a registry older than the trust is not covered.
                known = (stamp, bool(digest) and trusting.trusted_digest(folder) == digest)
                self._trust[found.id] = known
        if not known[1]:
            raise UntrustedError(
                f"adapter '{found.id}' is this project's own and may name any program or address; "
                f"read {PROJECT_FOLDER}/{found.id}, then run `cos adapters trust {found.id}`"
            )
        return digest


class _Reading:
    """One discovery: what each source comes to."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.raw: dict[str, dict[str, Any]] = {}
        self.descriptors: dict[str, Descriptor] = {}
        self.errors: dict[str, str] = {}
        self.warnings: list[str] = []
        self.packages: dict[str, str] = {}
        self.digests: dict[str, str] = {}

    def base(self, source: Source) -> None:
        """A built-in, or one that an installed package brings."""
        name = source.label or source.id
        if source.id in self.descriptors:
            first = self.descriptors[source.id]
            self.errors[name] = (
                f"{source.file}: id: '{source.id}' is already the id of the adapter in {first.folder}"
            )
            return
        try:
            raw = _absolute(_mapping(source.file), source.folder)
            self._keep(source, raw, source)
        except AdapterError as error:
            self.errors[name] = str(error)

    def own(self, source: Source) -> None:
        """The project's: over the base of the same id, or an adapter by itself. Only data until trusted."""
        base = self.descriptors.pop(source.id, None)
        self.errors.pop(source.id, None)
        try:
            before = trusting.signature(source.folder)
            digest = trusting.folder_digest(source.folder)
            raw = _absolute(_mapping(source.file), self.project)
            describe({"models": raw.get("models")}, file=source.file, default_id=source.id)
            home = source
            if base is not None:
                entrypoints = raw.get("runtime_entrypoints")
                if not (isinstance(entrypoints, dict) and entrypoints.get("dispatch")):
                    package = self.packages.get(source.id, "")
                    home = msgspec.structs.replace(source, folder=Path(base.folder), package=package)
                raw = _merged(self.raw[source.id], raw)
            self._keep(source, raw, home)
            unchanged = trusting.signature(source.folder) == before
            self.digests[source.id] = digest if unchanged else ""
        except AdapterError as error:
            # Not the base instead: the person meant the project's, and would not see that it is not used.
            self.errors[source.id] = str(error)

    def _keep(self, source: Source, raw: dict[str, Any], home: Source) -> None:
        found, warnings = describe(raw, file=source.file, default_id=source.id)
        if found.id != source.id:
            what = "its entry point" if source.origin == "entry_point" else "its folder"
            raise DescriptorError(f"{source.file}: id: '{found.id}' is not the name of {what}, '{source.id}'")
        for field in MODULES:
            module = getattr(found.runtime_entrypoints, field)
            if module and not (home.folder / module).is_file():
                raise DescriptorError(
                    f"{source.file}: runtime_entrypoints.{field}: {home.folder / module} does not exist"
                )
        self.raw[source.id] = raw
        self.descriptors[source.id] = msgspec.structs.replace(
            found, origin=source.origin, folder=str(home.folder)
        )
        self.packages[source.id] = home.package
        self.warnings.extend(warnings)


def _read(project: Path, own: tuple[Source, ...]) -> Registry:
    reading = _Reading(project)
    installed, broken = _entry_points()
    for source in (*builtin_sources(), *installed):
        reading.base(source)
    reading.errors.update(broken)
    for source in own:
        reading.own(source)
    agents: tuple[str, ...] = ()
    try:
        agents = read_agents(project)
    except DescriptorError as error:
        reading.errors[PROJECT_FILE] = str(error)
    for agent in agents:
        if agent not in reading.descriptors and agent not in reading.errors:
            hint = near_miss(agent, reading.descriptors)
            reading.warnings.append(f"{project / PROJECT_FILE}: agents: there is no adapter '{agent}'{hint}")
    return Registry(
        project,
        agents=agents,
        descriptors=reading.descriptors,
        errors=reading.errors,
        warnings=tuple(reading.warnings),
        packages=reading.packages,
        digests=reading.digests,
    )


def _key(digest: str) -> str:
    """What tells one trusted content of a folder from the next, as part of a module's name."""
    return digest.removeprefix("sha256:")


def _stamp(project: Path, own: tuple[Source, ...]) -> _Stamp:
    """Everything discovery looks at that may change while we run, by stats alone: not the built-ins."""
    return (
        identity(f"{project}/{PROJECT_FILE}"),
        tuple((source.id, identity(f"{source.folder}/{FILE}")) for source in _entry_points()[0]),
        tuple((source.id, _signature(source.folder)) for source in own),
    )


def _signature(folder: Path) -> object:
    try:
        return trusting.signature(folder)
    except UntrustedError as error:
        return str(error)


def _entry_points() -> tuple[tuple[Source, ...], dict[str, str]]:
    global _installed
    stamp = import_path_identity()
    if _installed is None or _installed[0] != stamp:
        _installed = (stamp, entry_point_sources())
    return _installed[1]


def _mapping(file: Path) -> dict[str, Any]:
    """A file's mapping, read again only when the file changed. Callers do not change it."""
    now = identity(file)
    known = _mappings.get(file)
    if now is None or known is None or known[0] != now:
        known = (now or (0, 0, 0, 0, 0), read_mapping(file))
        _mappings[file] = known
    return known[1]


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``over`` field by field over ``base``; models by their id, every other list as a whole."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            continue
        below = base.get(key)
        if key == "models" and isinstance(value, list) and isinstance(below, list):
            result[key] = _merged_models(below, value)
        elif isinstance(value, Mapping) and isinstance(below, Mapping):
            result[key] = _merged(below, value)
        else:
            result[key] = value
    return result


def _merged_models(base: list[Any], over: list[Any]) -> list[Any]:
    if any(model.get("default") for model in over):
        base = [{key: value for key, value in model.items() if key != "default"} for model in base]
    by_id = {model["id"]: model for model in base}
    for model in over:
        by_id[model["id"]] = {**by_id.get(model["id"], {}), **model}
    return list(by_id.values())


def _absolute(raw: dict[str, Any], home: Path) -> dict[str, Any]:
    """Relative program paths (``tools/check``, ``./check``) made absolute; bare names stay PATH's matter."""

    def resolved(word: Any) -> Any:
        relative = isinstance(word, str) and "/" in word and not word.startswith("/")
        return str(home / word) if relative else word

    result = dict(raw)
    if isinstance(cli := raw.get("cli"), dict) and "binary" in cli:
        result["cli"] = {**cli, "binary": resolved(cli["binary"])}
    if isinstance(models := raw.get("models"), list):
        result["models"] = [
            {**model, "argv": [resolved(model["argv"][0]), *model["argv"][1:]]}
            if isinstance(model, dict) and isinstance(model.get("argv"), list) and model["argv"]
            else model
            for model in models
        ]
    return result
