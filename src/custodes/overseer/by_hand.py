"""A profile switched by hand: what a person asks for, what comes of it, what is refused. Pure.

==================  =====================================================  ===================================
target              then                                                   refused
==================  =====================================================  ===================================
``provider/model``  it is set to that and *held*: left alone, whatever     unless forced, where that is not
                    happens to the provider                                well, or nobody names that model
``primary``         it is on its primary, and the overseer's again         where that is sick: it would be
                                                                           left again at once
``auto``            it is where it belongs by its row and how that
                    stands, and the overseer's again
==================  =====================================================  ===================================

A model that is held is what a model set by hand in any other way is (seed 003 leaves it open; a person's own
choice stays): setting the profile back to its primary by whatever means gives it back, too, unless it is the
primary that is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from custodes.adapters.errors import instead
from custodes.adapters.port import ProfileSetting
from custodes.overseer.config import Choice, Config, ProfileConfig
from custodes.overseer.decide import LEAVING, ProfileRecord, Standing, automatic, last_resorts, standing, word
from custodes.overseer.incident import Incident, by_person
from custodes.overseer.ledger import resolved
from custodes.overseer.probe import MODEL
from custodes.overseer.watch import SICK, Watch
from custodes.supervision.record.clock import Now

PRIMARY, AUTO = "primary", "auto"
UNWELL: frozenset[Standing] = LEAVING | SICK
RefusalKind = Literal["unknown", "unwell", "stale", "busy", "failed"]


class SwitchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """``target`` is ``provider/model``, ``primary`` or ``auto``; ``by`` the surface it comes from. ``was`` is
    the model that the person saw the profile on: on any other nothing is switched; "" is any."""

    profile: str
    target: str
    by: str
    force: bool = False
    was: str = ""


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. ``held``: it stays there until a person lets it go. ``changed`` is False where all
    was so before, ``moved`` where at least the model was."""

    profile: str
    old_model: str
    new_model: str
    held: bool
    moved: bool
    changed: bool
    by: str


class SwitchRefused(Exception):  # noqa: N818 - named for what is so
    """A profile was not switched by hand; says why, and what would work. ``kind``: ``unknown`` (no such
    profile or target), ``unwell`` (the target), ``stale`` (the profile is on another model by now), ``busy``
    (the overseer that runs does not take it) or ``failed`` (it could not be read or set)."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class SwitchReply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an order, for another process: ``done``, or refused with ``kind`` and ``message``."""

    done: Switched | None = None
    kind: RefusalKind = "failed"
    message: str = ""


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    to: Choice
    held: bool


def row_of(order: SwitchOrder, config: Config) -> ProfileConfig:
    """:raises SwitchRefused: there is no such profile, or nothing is to be switched at all."""
    row = config.fallback_matrix.get(order.profile)
    if row is None:
        hint = instead(order.profile, config.fallback_matrix)
        raise SwitchRefused("unknown", f"there is no profile '{order.profile}' in {config.file}; {hint}")
    if config.dry_run:
        raise SwitchRefused(
            "failed", f"nothing is switched in a dry run (supervisor.dry_run in {config.file}, or --dry-run)"
        )
    return row


def aim(order: SwitchOrder, record: ProfileRecord, config: Config, watches: Mapping[str, Watch]) -> Aim:
    """Where the profile is to go. ``record`` is of what was just read of it.

    :raises SwitchRefused: nowhere; see the table.
    """
    row, name = row_of(order, config), order.profile
    if record.problem:
        raise SwitchRefused("failed", record.problem)
    if order.was and order.was != record.model:
        why = f"'{name}' is on {record.model} by now, and no longer on {order.was}"
        raise SwitchRefused("stale", f"{why}; look again before it is switched")
    if order.target == AUTO:
        return Aim(to=automatic(row, config, watches), held=False)
    if order.target == PRIMARY:
        here = standing(row.primary, watches)
        if here in LEAVING:
            why = f"its primary {row.primary} is {word(here)} and would be left again at once"
            how = f"'{AUTO}' takes the best of its row, '{row.primary}' itself with 'force' holds it there"
            raise SwitchRefused("unwell", f"{why}; {how}")
        return Aim(to=row.primary, held=False)
    choice = _named(order, row, config, watches)
    if not order.force and (here := standing(choice, watches)) in UNWELL:
        detail = watches[choice.provider].detail
        said = f" ({detail})" if detail else ""
        why = f"{choice} is {word(here)}{said}"
        raise SwitchRefused("unwell", f"{why}; with 'force' '{name}' is switched to it all the same")
    return Aim(to=choice, held=True)


def offers(row: ProfileConfig, config: Config, watches: Mapping[str, Watch]) -> tuple[Choice, ...]:
    """What a profile may be switched to as it stands in the file, or is served as a last resort; its row
    first."""
    return tuple(dict.fromkeys((*row.choices, *last_resorts(row, config, watches))))


def switched(
    order: SwitchOrder, record: ProfileRecord, read: ProfileSetting, aimed: Aim, config: Config
) -> Switched:
    """What comes of it, given what the profile is set to."""
    moved = not read.holds(config.setting(order.profile, aimed.to))
    kept = record.held == aimed.to if aimed.held else not record.hand
    return Switched(
        profile=order.profile,
        old_model=record.model,
        new_model=str(aimed.to),
        held=aimed.held,
        moved=moved,
        changed=moved or not kept,
        by=order.by,
    )


def entry(done: Switched, primary: Choice, known: Incident | None, now: Now) -> tuple[str, Incident | None]:
    """The event and the incident of a change. ``known`` is the open one of the profile's hand-made model.

    What is held is open for as long as it is; a move to what is not is over at once; where nothing moves,
    what was open ends.
    """
    who = f"a person ({done.by})"
    if not (done.held or done.moved):
        return "resolved", None if known is None else resolved(known, who, now)
    incident = by_person(
        done.profile,
        primary,
        old=done.old_model,
        new=done.new_model if done.moved else "",
        detail=f"{who} holds it on {done.new_model}; it stays until they let it go"
        if done.held
        else f"{who} gave it back to the overseer",
        by=done.by,
        now=now,
    )
    if not done.held:
        return "moved", resolved(incident, who, now)
    return "moved" if done.moved else "opened", incident


def _named(order: SwitchOrder, row: ProfileConfig, config: Config, watches: Mapping[str, Watch]) -> Choice:
    """The choice that a target names: of a provider of the row, since only those state the same of a setting
    and so move all of it together."""
    provider, slash, model = order.target.partition("/")
    choice = Choice(provider, model)
    known = offers(row, config, watches)
    if choice in known:
        return choice
    words = [*map(str, known), PRIMARY, AUTO]
    if not slash or provider not in row.providers or not MODEL.fullmatch(model):
        hint = instead(order.target, words)
        raise SwitchRefused("unknown", f"'{order.profile}' cannot be switched to '{order.target}'; {hint}")
    if not order.force and model not in config.models_of(provider) and not watches[provider].listed(model):
        hint = instead(order.target, words)
        why = f"neither {config.file} nor {provider} itself names a model '{model}'"
        raise SwitchRefused("unknown", f"{why}; {hint}; with 'force' it is taken all the same")
    return choice
