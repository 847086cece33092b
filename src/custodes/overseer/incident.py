"""An incident, as the seed models it, and what opens and resolves one. Pure."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Literal

import msgspec

from custodes.overseer.config import Choice
from custodes.overseer.decide import Action, Decision
from custodes.overseer.watch import Watch
from custodes.supervision.record.clock import Now, utc_time

Kind = Literal["outage", "cooldown", "hand", "problem", "probe"]


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Seed 003, "Incident model". Moments are ISO 8601 in UTC.

    ``opened`` is the timestamp in wall seconds. ``cause`` is what at most one active incident may have.
    ``new_model`` is empty where nothing moved; ``profile_affected`` where no profile works on the provider.
    ``by`` is who acted: ``overseer``, or the surface (``cli``, ``hub``, …) that a person switched a profile
    from. ``resolved_by`` says who ended it, ``seconds`` how long it lasted.
    """

    id: str
    timestamp: str
    provider: str
    model: str
    error_code: str
    action: Action
    profile_affected: str
    old_model: str
    new_model: str
    recovery_eta: str | None
    status: Literal["active", "resolved"] = "active"
    cause: str
    detail: str
    opened: float
    resolved: str | None = None
    resolved_by: str | None = None
    seconds: float | None = None
    by: str = "overseer"


def cause_of(kind: Kind, provider: str, profile: str) -> str:
    """One incident for one profile and what ails it; one for a provider that no profile works on."""
    return f"{kind}:{provider}:{profile}"


def of_decision(decision: Decision, watch: Watch | None, now: Now) -> Incident:
    """The incident that a decision opens. ``watch`` is that of the provider it is about."""
    about, kind = decision.about, decision.kind or "outage"
    provider = about.provider if about else ""
    return Incident(
        id=str(uuid.uuid4()),
        timestamp=utc_time(now.wall),
        provider=provider,
        model=about.model if about else "",
        error_code=_code(decision, watch),
        action=decision.action,
        profile_affected=decision.profile,
        old_model=str(decision.at or ""),
        new_model=str(decision.to or ""),
        recovery_eta=_eta(watch, now) if kind == "outage" else None,
        cause=cause_of(kind, provider, decision.profile),
        detail=decision.why,
        opened=now.wall,
    )


def of_provider(watch: Watch, now: Now) -> Incident:
    """The incident of a provider itself: sick while no profile works on it, or asked wrongly."""
    kind: Kind = "probe" if watch.condition == "misconfigured" else "outage"
    return Incident(
        id=str(uuid.uuid4()),
        timestamp=utc_time(now.wall),
        provider=watch.provider,
        model="",
        error_code=watch.code,
        action="alert_only",
        profile_affected="",
        old_model="",
        new_model="",
        recovery_eta=_eta(watch, now),
        cause=cause_of(kind, watch.provider, ""),
        detail=_said(watch),
        opened=now.wall,
    )


def by_person(
    profile: str, primary: Choice, *, old: str, new: str, detail: str, by: str, now: Now
) -> Incident:
    """The incident of a profile that a person switched, from the surface ``by``. ``new`` is empty where it
    was on that model already."""
    action: Action = "alert_only"
    if new:
        action = "switch_back" if new == str(primary) else "switch_to_fallback"
    return Incident(
        id=str(uuid.uuid4()),
        timestamp=utc_time(now.wall),
        provider=primary.provider,
        model=primary.model,
        error_code="hand",
        action=action,
        profile_affected=profile,
        old_model=old,
        new_model=new,
        recovery_eta=None,
        cause=cause_of("hand", primary.provider, profile),
        detail=detail,
        opened=now.wall,
        by=by,
    )


def moved(incident: Incident, eta: float, least: float) -> bool:
    """Whether the recovery that is expected now differs from the incident's by ``least`` seconds or more."""
    if incident.recovery_eta is None:
        return True
    return abs(datetime.fromisoformat(incident.recovery_eta).timestamp() - eta) >= least


def _said(watch: Watch) -> str:
    if watch.condition == "misconfigured":
        return f"the probe of {watch.provider} is misconfigured ({watch.code}): {watch.detail}"
    return f"{watch.provider} is {watch.condition.replace('_', ' ')} ({watch.code}): {watch.detail}"


def _code(decision: Decision, watch: Watch | None) -> str:
    if decision.kind in ("hand", "problem", "cooldown"):
        return decision.kind
    if watch is None:
        return ""
    return watch.code or ("absent" if decision.about and watch.absent(decision.about.model) else "")


def _eta(watch: Watch | None, now: Now) -> str | None:
    eta = None if watch is None else watch.eta(now)
    return None if eta is None else utc_time(eta)
