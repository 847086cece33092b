"""From the ``model_routing`` object as it stands in the file to a complete Policy.

Partial and older shapes are read; a value that means nothing is an error and never a default, since
supervision must not fall silently to something nobody chose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar, get_args

import msgspec

from custodes.adapters.errors import closest
from custodes.policy.policy import Complexity, Cooldown, FallbackPolicy, Mode, Policy, Target, Telemetry
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.wording import choices

LEGACY_ORCHESTRATOR_MODEL = "orchestrator_model"
"""The older place of ``orchestrator.model``: read where that is empty, kept in step where it is present."""

MAX_PARALLEL = (1, 16)
MAX_LIVE = (1, 256)
ASK_SECONDS = (0, 86_400)
SECONDS = (1, 366 * 86_400)
MOST_WARNINGS = 20
"""Each looks for the word that was meant, at every reading of the file, and stands on every surface."""

_T = TypeVar("_T")


class BadValueError(ValueError):
    """A value that the policy cannot hold. ``where`` is its dotted path in the file."""

    def __init__(self, where: str, found: str, wanted: str) -> None:
        super().__init__(f"{where} is {found}; {wanted} would work")
        self.where = where
        self.found = found
        self.wanted = wanted


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A normalized policy, and what in the file has no effect though somebody may think so: the first
    :data:`MOST_WARNINGS` of it."""

    policy: Policy
    warnings: tuple[str, ...] = ()


def shown(value: Any) -> str:
    """A JSON value in a sentence: short, and never a whole document."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def boolean(where: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise BadValueError(where, shown(value), "true or false")


def section(where: str, value: Any) -> dict[str, Any]:
    """An object; absent and null read as an empty one."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise BadValueError(where, shown(value), "an object")


def _named(where: str, value: Any) -> dict[str, Any]:
    """An object whose keys are names of somebody's own."""
    found = section(where, value)
    for name in found:
        if not name.isprintable():  # a control character, or half a surrogate pair
            raise BadValueError(where, f"an object with the key {shown(name)}", "a name on one line")
    return found


def text(where: str, value: Any) -> str:
    """A name on one line; absent and null read as empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadValueError(where, shown(value), "a text")
    stripped = value.strip()
    if (value and not stripped) or not stripped.isprintable():
        raise BadValueError(where, shown(value), 'a name on one line, or "" for none,')
    return stripped


def one_of(where: str, value: Any, words: tuple[_T, ...], fold: Callable[[str], str] = str) -> _T:
    found = fold(value) if isinstance(value, str) else value
    for word in words:
        if word == found:
            return word
    names = [str(word) for word in words]
    close = closest(found, names) if isinstance(found, str) else None
    raise BadValueError(where, shown(value), choices(names) + (f" (did you mean {close}?)" if close else ""))


def whole(where: str, value: Any, bounds: tuple[int, int]) -> int:
    low, high = bounds
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadValueError(where, shown(value), f"a whole number from {low} to {high}")
    return value


def target(where: str, value: Any) -> Target:
    fields = section(where, value)
    return Target(**{f: text(f"{where}.{f}", fields.get(f)) for f in Target.__struct_fields__})


def targets(where: str, value: Any) -> dict[str, Target]:
    """Entries in the order of the file; one that decides nothing is none."""
    entries = {name: target(f"{where}.{name}", entry) for name, entry in _named(where, value).items()}
    return {name: entry for name, entry in entries.items() if entry != Target()}


def normalize(raw: Any, where: str = "model_routing") -> Reading:
    """The complete policy of a ``model_routing`` object that may be absent, partial or older.

    :raises BadValueError: one value is none that the policy can hold.
    """
    fields = section(where, raw)
    found: dict[str, Any] = {}
    if "enabled" in fields:
        found["enabled"] = boolean(f"{where}.enabled", fields["enabled"])
    if "mode" in fields:
        found["mode"] = one_of(f"{where}.mode", fields["mode"], get_args(Mode))
    if "complexity_threshold" in fields:
        found["complexity_threshold"] = one_of(
            f"{where}.complexity_threshold", fields["complexity_threshold"], get_args(Complexity), str.upper
        )
    if "fallback_policy" in fields:
        found["fallback_policy"] = one_of(
            f"{where}.fallback_policy", fields["fallback_policy"], get_args(FallbackPolicy)
        )
    for name, bounds in (
        ("max_parallel", MAX_PARALLEL),
        ("max_live", MAX_LIVE),
        ("ask_seconds", ASK_SECONDS),
    ):
        if name in fields:
            found[name] = whole(f"{where}.{name}", fields[name], bounds)
    cooldown = section(f"{where}.cooldown", fields.get("cooldown"))
    found["cooldown"] = Cooldown(
        **{
            f: whole(f"{where}.cooldown.{f}", cooldown[f], SECONDS)
            for f in Cooldown.__struct_fields__
            if f in cooldown
        }
    )
    orchestrator = target(f"{where}.orchestrator", fields.get("orchestrator"))
    legacy = text(f"{where}.{LEGACY_ORCHESTRATOR_MODEL}", fields.get(LEGACY_ORCHESTRATOR_MODEL))
    if legacy and not orchestrator.model:
        orchestrator = msgspec.structs.replace(orchestrator, model=legacy)
    found["orchestrator"] = orchestrator
    found["roles"] = targets(f"{where}.roles", fields.get("roles"))
    found["preset"] = text(f"{where}.preset", fields.get("preset"))
    presets = _named(f"{where}.presets", fields.get("presets"))
    found["presets"] = {name: targets(f"{where}.presets.{name}", hints) for name, hints in presets.items()}
    telemetry = section(f"{where}.telemetry", fields.get("telemetry"))
    found["telemetry"] = Telemetry(
        **{
            f: boolean(f"{where}.telemetry.{f}", telemetry[f])
            for f in Telemetry.__struct_fields__
            if f in telemetry
        }
    )
    policy = Policy(**found)
    warnings = islice(_warnings(where, fields, policy, legacy), MOST_WARNINGS)
    return Reading(policy=policy, warnings=tuple(warnings))


def _warnings(where: str, fields: dict[str, Any], policy: Policy, legacy: str) -> Iterator[str]:
    if policy.preset and policy.preset not in policy.presets:
        yield f"{where}.preset names '{policy.preset}', which is not among its presets; it is ignored"
    if legacy and legacy != policy.orchestrator.model:
        yield (
            f"{where}.{LEGACY_ORCHESTRATOR_MODEL} says '{legacy}', but orchestrator.model says "
            f"'{policy.orchestrator.model}' and decides; the next write of that model brings them in step"
        )
    known = (*Policy.__struct_fields__, LEGACY_ORCHESTRATOR_MODEL)
    for key in islice((key for key in fields if key not in known), MOST_WARNINGS):
        if close := closest(key, known, cutoff=0.8):
            yield f"{where}.{key} is no key of the policy and decides nothing; did you mean '{close}'?"
    for role in policy.roles:
        if not is_role(role):
            yield f"{where}.roles: {unknown_role(role)}"
    for name, hints in policy.presets.items():
        for role in hints:
            if not is_role(role):
                yield f"{where}.presets.{name}: {unknown_role(role)}"


def policy_keys() -> tuple[str, ...]:
    """Every key that can be cleared by name, dotted, with ``<role>`` and ``<preset>`` where a name goes."""
    keys: list[str] = []
    for name in Policy.__struct_fields__:
        if name == "cooldown":
            keys += [name, *(f"cooldown.{f}" for f in Cooldown.__struct_fields__)]
        elif name == "telemetry":
            keys += [name, *(f"telemetry.{f}" for f in Telemetry.__struct_fields__)]
        elif name == "orchestrator":
            keys += [name, *(f"orchestrator.{f}" for f in Target.__struct_fields__)]
        elif name == "roles":
            keys += [name, "roles.<role>", *(f"roles.<role>.{f}" for f in Target.__struct_fields__)]
        elif name == "presets":
            keys += [name, "presets.<preset>", "presets.<preset>.<role>"]
        else:
            keys.append(name)
    return tuple(keys)
