"""What becomes of one profile. Pure: ``decide(…)`` reads how everything stands and names one action.

A profile's model is its *primary*, another *choice* of its row, or *hand-made*: not what the overseer set, or
what a person had it switch to and *hold*.
*Clear* is well without a bad verdict behind it; *leaving* is what a sick choice asks for.

==========================  =======================  ========================================================
its model                   stands                   then
==========================  =======================  ========================================================
hand-made                   in any way               left alone, and said once
cannot be read              -                        left alone, and said once
the primary                 well, unknown,           stays
                            misconfigured
another choice              the same                 back to the primary once that is clear: `switch_back`;
                                                     within the cooldown `alert_only`
any                         limited, needs_person,   to the best of the row, whatever the cooldown;
                            dead, absent             `alert_only` where there is none
any, that could not be      in any way               `alert_only` until its retry is due
set a moment ago
any                         degraded                 `alert_only`; with ``switch_degraded`` to a clear one,
                                                     outside the cooldown
==========================  =======================  ========================================================

The best of the row: the first clear one in the row's order; then the first that is well; then the last
resort, any well model of the named provider; then the first that is degraded, if the profile's own is worse.

The cooldown keeps a profile from moving between two choices that both work. It never keeps one where nothing
works (seed: ``alert_only`` within 30 minutes; design: leaving a dead one is always allowed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from custodes.adapters.port import ProfileSetting
from custodes.overseer.config import Choice, Config, ProfileConfig
from custodes.overseer.watch import Condition, Watch
from custodes.supervision.record.clock import Deadline, Now

Action = Literal["switch_to_fallback", "switch_back", "alert_only", "none"]
Standing = Condition | Literal["absent"]
LEAVING: frozenset[Standing] = frozenset({"limited", "needs_person", "dead", "absent"})


class ProfileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of a profile: the choice it was last left on, until when it moves no more between
    two that work, the hand-made model it was found on (""), and why it cannot be read ("").

    ``held`` is the choice that a person switched it to, for as long as it is found there.
    ``failed`` is why it could not be set, ``failures`` how often in a row, ``retry`` when it is tried again.
    """

    profile: str
    choice: Choice | None = None
    cooldown: Deadline | None = None
    hand: str = ""
    problem: str = ""
    failed: str = ""
    failures: int = 0
    retry: Deadline | None = None
    held: Choice | None = None

    @property
    def model(self) -> str:
        """What it is on, as it was last read; "" where that is not known."""
        return self.hand or ("" if self.problem else str(self.choice or ""))

    def cooling(self, now: Now) -> float:
        """Seconds left of the cooldown."""
        return 0.0 if self.cooldown is None else self.cooldown.remaining(now)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """``to`` is set where the profile is to move. ``about`` is the choice that is the reason, ``why`` the
    reason in words. ``kind`` tells the causes of alerts apart."""

    profile: str
    action: Action
    why: str
    kind: Literal["", "outage", "cooldown", "hand", "problem"] = ""
    at: Choice | None = None
    to: Choice | None = None
    about: Choice | None = None


def standing(choice: Choice, watches: Mapping[str, Watch]) -> Standing:
    """How a choice stands: as its provider, or absent where that does not serve it."""
    watch = watches.get(choice.provider)
    if watch is None:
        return "unknown"
    return "absent" if watch.condition == "well" and watch.absent(choice.model) else watch.condition


def clear(choice: Choice, watches: Mapping[str, Watch]) -> bool:
    return standing(choice, watches) == "well" and watches[choice.provider].strikes == 0


def taken_up(
    record: ProfileRecord,
    read: ProfileSetting,
    row: ProfileConfig,
    config: Config,
    watches: Mapping[str, Watch],
) -> ProfileRecord:
    """The record, given what the profile was just read to be set to.

    At the first sight any choice of the row is taken as it is found. Later only what was set by the overseer
    is its own, and the primary, to which a person may always put it back; anything else is hand-made, and
    what a person had it hold stays so, until another hand has set it to something else.
    """
    name = record.profile

    def is_set_to(choice: Choice) -> bool:
        return read.holds(config.setting(name, choice))

    held = record.held
    if held is not None and held.provider in config.providers and is_set_to(held):
        return msgspec.structs.replace(record, choice=held, hand=str(held), problem="")
    own = record.choice
    if own is None or (own.provider not in config.providers):
        found = next(
            (each for each in (*row.choices, *last_resorts(row, config, watches)) if is_set_to(each)), None
        )
    else:
        found = next((each for each in (own, row.primary) if is_set_to(each)), None)
    if found is None:
        hand = str(read).strip() or "no model"
        return msgspec.structs.replace(record, hand=hand, held=None, problem="")
    # A row that was edited no longer has the old choice: it is left for the primary, in time.
    return msgspec.structs.replace(record, choice=found, hand="", held=None, problem="")


def automatic(row: ProfileConfig, config: Config, watches: Mapping[str, Watch]) -> Choice:
    """Where a profile belongs that nobody holds, whatever its cooldown."""
    here, best = standing(row.primary, watches), _best(row.primary, row, config, watches)
    if best is None:
        return row.primary
    slow = here == "degraded" and config.switch_degraded and clear(best, watches)
    return best if here in LEAVING or slow else row.primary


def decide(
    record: ProfileRecord, row: ProfileConfig, config: Config, watches: Mapping[str, Watch], now: Now
) -> Decision:
    """One action for one profile; see the table."""
    found = _wanted(record, row, config, watches, now)
    if found.to is not None and record.retry is not None and record.retry.remaining(now) > 0:
        return Decision(profile=record.profile, action="alert_only", kind="problem", why=record.failed)
    return found


def _wanted(
    record: ProfileRecord, row: ProfileConfig, config: Config, watches: Mapping[str, Watch], now: Now
) -> Decision:
    name, at = record.profile, record.choice
    if record.problem:
        return Decision(profile=name, action="alert_only", kind="problem", why=record.problem)
    if record.hand:
        why = f"a person set it to {record.hand}; it is left alone until it is set back to {row.primary}"
        if record.held is not None:
            here = word(standing(record.held, watches))
            why = f"a person holds it on {record.held}, which is {here}; it stays until they let it go"
        return Decision(profile=name, action="alert_only", kind="hand", why=why, about=row.primary)
    if at is None:
        return Decision(profile=name, action="none", why="it was not read yet")
    here = standing(at, watches)
    best = _best(at, row, config, watches)
    if here in LEAVING:
        if best is None:
            why = f"{at} is {word(here)}, and nothing in its row is healthy"
            return Decision(profile=name, action="alert_only", kind="outage", why=why, at=at, about=at)
        return _move(name, at, best, row, f"{at} is {word(here)}", about=at)
    wants_back = at != row.primary and clear(row.primary, watches)
    if here == "degraded" and not wants_back:
        if not config.switch_degraded or best is None or not clear(best, watches):
            return Decision(
                profile=name, action="alert_only", kind="outage", why=f"{at} is degraded", at=at, about=at
            )
        target, why = best, f"{at} is degraded"
    elif wants_back:
        target, why = row.primary, f"{row.primary} is well again"
    else:
        return Decision(profile=name, action="none", why=f"{at} is {word(here)}", at=at)
    if (left := record.cooling(now)) > 0:
        why = f"{why}; it was moved lately and stays on {at} for {_minutes(left)} more"
        return Decision(
            profile=name, action="alert_only", kind="cooldown", why=why, at=at, to=None, about=target
        )
    return _move(name, at, target, row, why, about=target if wants_back else at)


def _move(name: str, at: Choice, to: Choice, row: ProfileConfig, why: str, about: Choice) -> Decision:
    action: Action = "switch_back" if to == row.primary else "switch_to_fallback"
    return Decision(profile=name, action=action, kind="outage", why=why, at=at, to=to, about=about)


def _best(at: Choice, row: ProfileConfig, config: Config, watches: Mapping[str, Watch]) -> Choice | None:
    """The best choice but the present one; None where none is better than a sick one."""
    named = [choice for choice in row.choices if choice != at]
    ranked = [
        *(choice for choice in named if clear(choice, watches)),
        *(choice for choice in named if standing(choice, watches) == "well"),
        *(choice for choice in last_resorts(row, config, watches) if choice != at),
        *(choice for choice in named if standing(choice, watches) == "degraded"),
    ]
    return ranked[0] if ranked else None


def last_resorts(row: ProfileConfig, config: Config, watches: Mapping[str, Watch]) -> Iterator[Choice]:
    """Every well model of the named provider: those that the file names first, then those it serves."""
    watch = watches.get(row.last_resort)
    if watch is None:
        return
    prefix = f"{row.last_resort}/"
    served = (model.removeprefix(prefix) for model in watch.served)
    for model in dict.fromkeys((*config.models_of(row.last_resort), *served)):
        choice = Choice(row.last_resort, model)
        if standing(choice, watches) == "well":
            yield choice


def word(here: Standing) -> str:
    words = {"needs_person": "refused until a person acts", "absent": "no longer served"}
    words |= {"misconfigured": "not known to be well, since its probe is misconfigured"}
    return words.get(here, here)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
