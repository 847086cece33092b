"""The settings page as data: sections of fields, with what is saved, typed, stale or wrong."""

from __future__ import annotations

from typing import Literal

import msgspec

from custodes.hub.forms import Conflict, Edit


class Option(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    label: str
    disabled: bool = False


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` is what the field shows, ``saved`` what stands in the policy. ``note`` says of a saved value
    that it is unavailable, and why; ``error`` why what was typed was refused."""

    key: str
    label: str
    kind: Literal["select", "text", "number"]
    value: str
    saved: str
    options: tuple[Option, ...] = ()
    note: str = ""
    error: str = ""
    conflict: Conflict | None = None
    help: str = ""
    default: str = ""
    """What it goes back to, as a person reads it."""
    suggestions: tuple[str, ...] = ()
    """What a free text may be taken from."""
    chooses: bool = False
    """Other fields of its section offer what fits it."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One form. ``route`` is where the role's work would go as things are saved, ``refusal`` why nowhere."""

    id: str
    title: str
    fields: tuple[Field, ...]
    help: str = ""
    route: str = ""
    refusal: str = ""
    clear: str = ""
    clear_preset: str = ""
    clear_label: str = ""
    version: str = ""
    draft: bool = False
    saved: bool = False
    error: str = ""
    active: bool = False


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a section that was sent: shown as it was typed, with what is wrong with it."""

    section: str
    edit: Edit = Edit()
    conflicts: dict[str, Conflict] = {}
    errors: dict[str, str] = {}
    error: str = ""
    saved: bool = False


class SettingsPage(msgspec.Struct, frozen=True, kw_only=True):
    enabled: bool
    module_enabled: bool
    groups: dict[str, tuple[Section, ...]]
    warnings: tuple[str, ...]
