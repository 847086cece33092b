"""How providers, profiles and incidents stand, as lines."""

from __future__ import annotations

from custodes.cli.output import paint, plain
from custodes.overseer.incident import Incident
from custodes.overseer.report import ProfileView, ProviderView

_STYLES = {"well": "green", "unknown": "dim", "misconfigured": "yellow", "degraded": "yellow"}


def provider_line(view: ProviderView) -> str:
    condition = paint(f"{view.condition.replace('_', ' '):<14}", _STYLES.get(view.condition, "red"))
    notes = [plain(view.detail)] if view.detail else []
    if view.error_code and view.error_code not in notes:
        notes.append(view.error_code)
    if view.recovery_eta:
        notes.append(f"expected back {view.recovery_eta}")
    if view.good:
        notes.append(f"{view.good} good so far")
    if view.strikes and view.condition == "well":
        notes.append(f"{view.strikes} bad in a row")
    return f"  {plain(view.provider):<16} {condition} {'; '.join(notes)}".rstrip()


def profile_line(view: ProfileView) -> str:
    model = plain(view.model) or "?"
    away = "" if model == view.primary else f" (primary {view.primary})"
    doing = "" if view.action == "none" else f"  {view.action.replace('_', ' ')}"
    to = f" → {view.to}" if view.to else ""
    return f"  {plain(view.profile):<16} {model}{away}{doing}{to}: {plain(view.why)}"


def incident_line(incident: Incident) -> str:
    who = incident.profile_affected or incident.provider
    what = incident.action.replace("_", " ")
    moved = f" {incident.old_model} → {incident.new_model}" if incident.new_model else ""
    ended = "active"
    if incident.status == "resolved":
        ended = f"resolved ({incident.resolved_by}) after {incident.seconds or 0:.0f} s"
    elif incident.recovery_eta:
        ended = f"active, expected back {incident.recovery_eta}"
    style = "red" if incident.status == "active" else "dim"
    code = f" [{incident.error_code}]" if incident.error_code else ""
    line = f"{incident.timestamp}  {plain(who)}: {what}{moved}{code}  {paint(ended, style)}"
    return f"{line}  {plain(incident.detail)}"
