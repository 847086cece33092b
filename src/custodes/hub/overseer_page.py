"""The overseer's page: providers, profiles, incidents, as its own report tells them."""

from __future__ import annotations

from custodes.hub.hub import Hub
from custodes.hub.live import Rendered
from custodes.hub.templates_env import render
from custodes.overseer import report
from custodes.overseer.reading import ConfigError, default_config
from custodes.store import StoreError
from custodes.supervision.record.clock import now

SHOWN = 50
"""Incidents: the newest."""
LOOK_S = 30.0
"""Between two readings of what profiles are set to, which other programs may change."""


async def render_overseer(hub: Hub, _: str = "") -> Rendered:
    try:
        config = await default_config()
    except ConfigError as error:
        return Rendered(texts={"nothing": render("_overseer_none.html", why=str(error))})
    try:
        known = await report.known(hub.project.path, config)
        incidents = await report.incidents(hub.project.path, SHOWN)
    except StoreError as error:
        return Rendered(texts={"problem": render("_problem.html", message=str(error))})
    status = report.status(known, config, now())
    offers = {name: report.offered(name, config, known.watches) for name in config.fallback_matrix}
    texts = {
        "overseer": render("_overseer.html", status=status, offers=offers, csrf=hub.access.csrf),
        "incidents": render("_incidents.html", incidents=incidents[::-1]),
    }
    return Rendered(texts=texts, due_s=LOOK_S)
