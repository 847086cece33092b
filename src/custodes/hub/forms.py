"""From the fields of a form to a change of the policy. Pure.

A field is named by its key in the policy, dotted (``roles.reviewer.effort``); beside it stands ``was.<key>``,
what the page showed. A field that still says so was not touched and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from custodes.policy.patch import PolicyPatch, TargetPatch
from custodes.policy.policy import Policy, Target
from custodes.policy.roles import ROLES

WAS = "was."
CLEAR = "clear"
CLEAR_PRESET = "clear_preset"
"""Presets have names of a person's own, which a dotted key cannot always tell."""
NEW = "new"
NEW_HINT = f"presets.{NEW}.{NEW}"
"""Where the fields of a hint stand whose preset and role are chosen in the same form (``name``, ``role``)."""

_DEFAULT = Policy()


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """``typed`` is every field as the person left it, ``seen`` what the page showed; ``clear`` is the key,
    ``clear_preset`` the preset, whose button was pressed ("" for none)."""

    typed: dict[str, str] = {}
    seen: dict[str, str] = {}
    clear: str = ""
    clear_preset: str = ""
    name: str = ""
    role: str = ""

    @property
    def changes(self) -> dict[str, str]:
        """The keys that it changes, with what they are to become."""
        below = self.clear or (self.clear_preset and f"presets.{self.clear_preset}")
        if below:
            return {key: "" for key in self.seen if key == below or key.startswith(f"{below}.")}
        return {key: value for key, value in self.typed.items() if value != self.seen.get(key, "")}


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A field that somebody else changed meanwhile: what was seen, what stands now, what was typed."""

    seen: str
    now: str
    typed: str


def edit_of(fields: Iterable[tuple[str, str]]) -> Edit:
    """What was typed, without the white space around it. Fields that are no keys of a policy are left out."""
    given = dict(fields)
    return Edit(
        typed={key: value.strip() for key, value in given.items() if _is_key(key)},
        seen={key.removeprefix(WAS): value for key, value in given.items() if key.startswith(WAS)},
        clear=given.get(CLEAR, ""),
        clear_preset=given.get(CLEAR_PRESET, ""),
        name=given.get("name", "").strip(),
        role=given.get("role", ""),
    )


def _is_key(key: str) -> bool:
    head, *rest = key.split(".")
    if head in ("roles", "presets"):
        return len(rest) > (1 if head == "roles" else 2) and rest[-1] in Target.__struct_fields__
    return key in values_of(_DEFAULT)


def conflicts(edit: Edit, policy: Policy) -> dict[str, Conflict]:
    """The fields of the edit that are not any more as they were seen."""
    now = values_of(policy)
    return {
        key: Conflict(seen=edit.seen[key], now=now.get(key, ""), typed=value)
        for key, value in edit.changes.items()
        if key in edit.seen and now.get(key, "") not in (edit.seen[key], value)
    }


def patch_of(edit: Edit) -> PolicyPatch:
    """The change it asks for. An empty field goes back to its default; what no policy could hold is left to
    the policy service, whose words then say so."""
    if edit.clear_preset:
        return PolicyPatch(clear_presets=(edit.clear_preset,))
    if edit.clear:
        return PolicyPatch(clear=(edit.clear,))
    clear: list[str] = []
    fields: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    roles: dict[str, dict[str, str]] = {}
    presets: dict[str, dict[str, dict[str, str]]] = {}
    for key, value in edit.changes.items():
        head, *rest = key.split(".")
        if head == "roles":
            roles.setdefault(".".join(rest[:-1]), {})[rest[-1]] = value
        elif head == "presets":
            preset, role, field = ".".join(rest[:-2]), rest[-2], rest[-1]
            if key.startswith(f"{NEW_HINT}."):
                preset, role = edit.name, edit.role
            presets.setdefault(preset, {}).setdefault(role, {})[field] = value
        elif not value and _default(key) != "":
            clear.append(key)
        elif rest:
            groups.setdefault(head, {})[rest[0]] = _read(key, value)
        else:
            fields[key] = _read(key, value)
    return PolicyPatch(
        **fields,
        **{name: type(getattr(PolicyPatch(), name))(**changed) for name, changed in groups.items()},
        roles={role: TargetPatch(**changed) for role, changed in roles.items()},
        presets={
            preset: {role: TargetPatch(**changed) for role, changed in hints.items()}
            for preset, hints in presets.items()
        },
        clear=tuple(clear),
    )


def _default(key: str) -> object:
    head, _, name = key.partition(".")
    value: object = getattr(_DEFAULT, head)
    return getattr(value, name) if name else value


def _read(key: str, value: str) -> Any:
    default = _default(key)
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(value, value)
    if isinstance(default, int) and value.removeprefix("-").isdecimal() and len(value) < 19:
        return int(value)
    return value


def field_of(edit: Edit, key: str) -> str:
    """The field of the form that a key of the policy was typed into."""
    new = f"presets.{edit.name}.{edit.role}"
    return f"{NEW_HINT}{key.removeprefix(new)}" if edit.name and key.startswith(f"{new}.") else key


def values_of(policy: Policy) -> dict[str, str]:
    """Every key that a form can show, with its text: those of all roles, and of every hint that there is."""
    found: dict[str, str] = {}
    for name in Policy.__struct_fields__:
        if name == "roles":
            for role in dict.fromkeys((*ROLES, *policy.roles)):
                _note(found, f"roles.{role}", policy.roles.get(role, Target()))
        elif name == "presets":
            for preset, hints in policy.presets.items():
                for role, target in hints.items():
                    _note(found, f"presets.{preset}.{role}", target)
        else:
            _note(found, name, getattr(policy, name))
    return found


def _note(found: dict[str, str], where: str, value: object) -> None:
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _note(found, f"{where}.{name}", getattr(value, name))
    else:
        found[where] = str(value).lower() if isinstance(value, bool) else str(value)
