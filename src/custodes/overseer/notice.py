"""What is told of an incident, in a line for a phone, and to which channels. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from custodes.overseer.config import Config
from custodes.overseer.incident import Incident
from custodes.overseer.tables import Notice


def notices_for(config: Config, event: str, incidents: Iterable[Incident]) -> list[Notice]:
    """One for each channel and incident. ``event`` is ``opened``, ``moved`` or ``resolved``."""
    return [
        Notice(
            channel=channel.name,
            # A move of an incident that was told of before is news; the same move is not.
            key=f"{incident.id} {event} {incident.new_model}",
            text=line(event, incident),
            since=incident.opened,
        )
        for incident in incidents
        for channel in config.notify.channels
    ]


def line(event: str, incident: Incident) -> str:
    """``worker-code: opencode-go/kimi → grok-cli/grok-4.5 (429; expected back 2026-07-21T00:00:00Z)``."""
    who = incident.profile_affected or incident.provider
    if event == "resolved":
        return f"{who}: over: {incident.detail} ({incident.resolved_by}; {_length(incident.seconds or 0)})"
    if event == "moved":
        notes = [incident.detail]
        if incident.error_code:
            notes.append(incident.error_code)
        if incident.recovery_eta:
            notes.append(f"expected back {incident.recovery_eta}")
        return f"{who}: {incident.old_model} → {incident.new_model} ({'; '.join(notes)})"
    eta = f"; expected back {incident.recovery_eta}" if incident.recovery_eta else ""
    return f"{who}: {incident.detail}{eta}"


def _length(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
