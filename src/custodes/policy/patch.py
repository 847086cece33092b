"""A change of the policy, field by field, and the edits of the file that it comes to."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from custodes.adapters.errors import instead, quoted
from custodes.policy.json_text import Edit
from custodes.policy.normalize import LEGACY_ORCHESTRATOR_MODEL, policy_keys
from custodes.policy.policy import Target

ROOT = "model_routing"


class TargetPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is unset stays; ``""`` clears the field."""

    adapter: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    effort: str | UnsetType = UNSET


class CooldownPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seconds. What is unset stays."""

    default_seconds: int | UnsetType = UNSET
    maximum_seconds: int | UnsetType = UNSET
    retry_after_ceiling_seconds: int | UnsetType = UNSET


class TelemetryPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is unset stays."""

    relay: bool | UnsetType = UNSET
    prompts: bool | UnsetType = UNSET
    outputs: bool | UnsetType = UNSET
    tool_arguments: bool | UnsetType = UNSET


class PolicyPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is unset stays. Clearing comes first, so that an entry can be cleared and written in one change.

    ``clear`` names keys to go back to their default, dotted: ``mode``, ``cooldown.default_seconds``,
    ``orchestrator.model``, ``roles.reviewer``, ``roles.reviewer.effort``, ``presets.night`` (all of them:
    :func:`~custodes.policy.normalize.policy_keys`).
    """

    enabled: bool | UnsetType = UNSET
    mode: str | UnsetType = UNSET
    complexity_threshold: str | UnsetType = UNSET
    fallback_policy: str | UnsetType = UNSET
    max_parallel: int | UnsetType = UNSET
    max_live: int | UnsetType = UNSET
    ask_seconds: int | UnsetType = UNSET
    cooldown: CooldownPatch = CooldownPatch()
    orchestrator: TargetPatch = TargetPatch()
    roles: dict[str, TargetPatch] = {}
    preset: str | UnsetType = UNSET
    presets: dict[str, dict[str, TargetPatch]] = {}
    telemetry: TelemetryPatch = TelemetryPatch()
    clear_orchestrator: bool = False
    clear_roles: tuple[str, ...] = ()
    clear_presets: tuple[str, ...] = ()
    clear: tuple[str, ...] = ()


class UnknownKeyError(ValueError):
    """A key was to be cleared that the policy does not have."""


Path = tuple[str, ...]


def cleared(patch: PolicyPatch) -> tuple[Path, ...]:
    """The paths below ``model_routing`` that the change clears.

    :raises UnknownKeyError: ``clear`` names a key that is none.
    """
    paths: list[Path] = [("orchestrator",)] if patch.clear_orchestrator else []
    paths += [("roles", role) for role in patch.clear_roles]
    paths += [("presets", preset) for preset in patch.clear_presets]
    paths += [_known(key) for key in patch.clear]
    return tuple(paths)


def _known(key: str) -> Path:
    path = tuple(key.split("."))
    shape = list(path)
    if path[0] in ("roles", "presets") and len(path) > 1:
        shape[1] = "<role>" if path[0] == "roles" else "<preset>"
        if path[0] == "presets" and len(path) > 2:
            shape[2] = "<role>"
    keys = policy_keys()
    if ".".join(shape) not in keys:
        raise UnknownKeyError(f"{quoted(key)} is no key of the policy; {instead(key, keys)}")
    return path


_PLAIN = (
    "enabled",
    "mode",
    "complexity_threshold",
    "fallback_policy",
    "max_parallel",
    "max_live",
    "ask_seconds",
    "preset",
)


def written(patch: PolicyPatch) -> dict[Path, Any]:
    """The paths below ``model_routing`` that the change sets, with their values."""
    found: dict[Path, Any] = {}
    for name in _PLAIN:
        _note(found, (name,), getattr(patch, name))
    for name in CooldownPatch.__struct_fields__:
        _note(found, ("cooldown", name), getattr(patch.cooldown, name))
    for name in TelemetryPatch.__struct_fields__:
        _note(found, ("telemetry", name), getattr(patch.telemetry, name))
    _note_target(found, ("orchestrator",), patch.orchestrator)
    for role, change in patch.roles.items():
        _note_target(found, ("roles", role), change)
    for preset, hints in patch.presets.items():
        for role, change in hints.items():
            _note_target(found, ("presets", preset, role), change)
    return found


def _note(found: dict[Path, Any], path: Path, value: Any) -> None:
    if value is not UNSET:
        found[path] = value.strip() if isinstance(value, str) and value.strip() else value


def _note_target(found: dict[Path, Any], path: Path, change: TargetPatch) -> None:
    for name in TargetPatch.__struct_fields__:
        _note(found, (*path, name), getattr(change, name))


def _at(raw: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(raw, dict) or key not in raw:
            return UNSET
        raw = raw[key]
    return raw


def edits(patch: PolicyPatch, raw: Any) -> tuple[Edit, ...]:
    """The edits of the file, given the ``model_routing`` object as it stands in it.

    The legacy ``orchestrator_model`` is kept in step where it is there. Clearing the orchestrator keeps
    keys in it that are not ours; a cleared role or preset goes as a whole.

    :raises UnknownKeyError: as :func:`cleared`.
    """
    result: list[Edit] = []
    legacy = _at(raw, (LEGACY_ORCHESTRATOR_MODEL,)) is not UNSET
    clears = cleared(patch)
    orchestrator_fields = [("orchestrator", f) for f in Target.__struct_fields__]
    for path in clears:
        singles = orchestrator_fields if path == ("orchestrator",) else [path]
        for single in singles:
            result.append(Edit(path=(ROOT, *single)))
            if legacy and single == ("orchestrator", "model"):
                result.append(Edit(path=(ROOT, LEGACY_ORCHESTRATOR_MODEL), value=""))
    for path, value in written(patch).items():
        model_of_orchestrator = path == ("orchestrator", "model")
        if value == "" and _at(raw, path) is UNSET:
            pass  # nothing to clear
        else:
            result.append(Edit(path=(ROOT, *path), value=value))
        if legacy and model_of_orchestrator:
            result.append(Edit(path=(ROOT, LEGACY_ORCHESTRATOR_MODEL), value=value))
    return tuple(result)
