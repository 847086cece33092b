"""Which incidents are to be open, given how everything stands now. Pure.

An *outage* of a profile's choice lasts until that choice is well and, where it is the profile's primary, the
profile is back on it. What else there is (a cooldown that holds a profile, a hand-made model, a profile that
cannot be read or set, a misconfigured probe) lasts for as long as it is so. A provider that is sick while no
profile's outage tells of it has one of its own. Nothing that is open is opened again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from custodes.overseer.config import Choice, Config
from custodes.overseer.decide import Decision, ProfileRecord, standing
from custodes.overseer.incident import Incident, cause_of, moved, of_decision, of_provider
from custodes.overseer.watch import Watch
from custodes.supervision.record.clock import Now, utc_time

ETA_MOVED_S = 60
"""An expected recovery that moved by less is not written again."""
_ENDERS = {"cooldown": "overseer", "hand": "a person, who set it back"}
"""Who ends an incident of a kind, by what ended it."""


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """What changes in the log: new incidents, and known ones as they now are."""

    opened: tuple[Incident, ...] = ()
    resolved: tuple[Incident, ...] = ()
    updated: tuple[Incident, ...] = ()


def reconcile(
    active: Iterable[Incident],
    decisions: Iterable[Decision],
    records: Mapping[str, ProfileRecord],
    watches: Mapping[str, Watch],
    config: Config,
    now: Now,
) -> Entries:
    """``decisions`` are those that moved nothing; what moved has opened its own incident."""
    known = {incident.cause: incident for incident in active}
    wanted: dict[str, Incident] = {}
    for decision in decisions:
        if decision.action == "alert_only" and decision.kind:
            watch = watches.get(decision.about.provider) if decision.about else None
            incident = of_decision(decision, watch, now)
            wanted[incident.cause] = incident
    for watch in watches.values():
        if watch.condition == "misconfigured":
            probe = of_provider(watch, now)
            wanted[probe.cause] = probe
    ends = {cause: _end(incident, records, watches, config, wanted) for cause, incident in known.items()}
    told = {
        incident.provider
        for cause, incident in (known | wanted).items()
        if not ends.get(cause) and incident.profile_affected and cause.startswith("outage:")
    }
    for watch in watches.values():
        cause = cause_of("outage", watch.provider, "")
        if watch.sick and watch.provider not in told:
            wanted[cause] = of_provider(watch, now)
        elif cause in known and not ends[cause]:
            ends[cause] = "told of with its profiles"
    return Entries(
        opened=tuple(incident for cause, incident in wanted.items() if cause not in known or ends[cause]),
        resolved=tuple(
            resolved(incident, ends[cause], now) for cause, incident in known.items() if ends[cause]
        ),
        updated=tuple(
            changed
            for cause, incident in known.items()
            if not ends[cause] and (changed := _expected(incident, watches, now)) is not incident
        ),
    )


def resolved(incident: Incident, by: str, now: Now) -> Incident:
    """The incident, ended now. Its length is that of the wall clock, and never negative."""
    return msgspec.structs.replace(
        incident,
        status="resolved",
        resolved=utc_time(now.wall),
        resolved_by=by,
        seconds=max(0.0, round(now.wall - incident.opened, 3)),
    )


def _end(
    incident: Incident,
    records: Mapping[str, ProfileRecord],
    watches: Mapping[str, Watch],
    config: Config,
    wanted: Mapping[str, Incident],
) -> str:
    """Who or what has ended it; "" while it lasts."""
    profile, provider = incident.profile_affected, incident.provider
    if (profile and profile not in config.fallback_matrix) or (provider and provider not in config.providers):
        return "the configuration no longer names it"
    if incident.cause in wanted:
        return ""
    if not incident.cause.startswith("outage:"):
        return _ENDERS.get(incident.cause.partition(":")[0], "it is so no longer")
    if not profile:
        return "" if watches[provider].sick else "recovered"
    record = records[profile]
    if record.hand:
        return "a person, who set the profile by hand"
    choice = Choice(provider, incident.model)
    if standing(choice, watches) not in ("well", "unknown", "misconfigured"):
        return ""
    if choice != config.fallback_matrix[profile].primary or not incident.new_model:
        return "recovered"
    return "overseer" if record.choice == choice else ""


def _expected(incident: Incident, watches: Mapping[str, Watch], now: Now) -> Incident:
    """The incident with the recovery that is expected by now."""
    if not incident.cause.startswith("outage:") or incident.provider not in watches:
        return incident
    eta = watches[incident.provider].eta(now)
    if eta is None or not moved(incident, eta, ETA_MOVED_S):
        return incident
    return msgspec.structs.replace(incident, recovery_eta=utc_time(eta))
