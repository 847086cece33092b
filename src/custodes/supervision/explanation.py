"""Where work would go and whether it would be let in: the route, its candidates, the health of their pools.

The project's database is only read, and not even opened where supervision is off. Nothing is run.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.explain import STEP_WORDS, Estimate, estimate, explain
from custodes.policy.history import Record
from custodes.policy.routing import Denial, PassedOver, Route, RouteRequest
from custodes.policy.settings import Settings
from custodes.policy.trigger import Decision
from custodes.store import Connection
from custodes.supervision.pools.health_view import HealthView
from custodes.supervision.pools.pool_table import read_health
from custodes.supervision.record.clock import now
from custodes.supervision.record.history import recorded
from custodes.supervision.record.project_file import ProjectFile
from custodes.supervision.work import PoolState

DECISION_WORDS: dict[Decision, str] = {
    "off": "supervision is off, so nothing is supervised; this is the route it would take if it were on",
    "below_gate": "below the complexity gate: it runs on the session's own runtime, past this route",
    "suggest": "a dry run: this route is returned, and nothing is run",
    "supervised": "it takes this route",
}
_NOTHING = "nothing can run it"


class PoolHealth(msgspec.Struct, frozen=True, kw_only=True):
    """``recovery_s`` is the whole seconds until the pool may let somebody in. ``unavailable`` says why its
    adapter waits for a person; empty where it does not."""

    state: PoolState
    recovery_s: int
    reason: str
    unavailable: str


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """``because`` says in words where each field came from; ``health`` is None where it was not looked at."""

    route: Route
    because: dict[str, str]
    health: PoolHealth | None
    estimate: Estimate | None


class WorkExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """``candidates`` in the order they would be tried; ``asked`` is the route the policy comes to even where
    it cannot run. Without candidates ``refusal`` says why. ``history`` counts the attempts on record."""

    role: str
    complexity: str | None
    decision: Decision
    meaning: str
    asked: Route | None
    rerouted: bool
    candidates: tuple[Candidate, ...]
    passed_over: tuple[PassedOver, ...]
    refusal: Denial | None
    history: int


async def explain_work(
    project: Path, request: RouteRequest, complexity: str | None, session: str = ""
) -> WorkExplanation:
    """Resolve a request exactly as a dispatch would now, and look at each candidate's pool.

    ``session`` is the adapter that the conversation itself runs on ("" for none).

    :raises SettingsError: the settings cannot be read.
    :raises StoreError: the database cannot be read.
    """
    settings, registry = Settings(project).read(), Registry.discover(project)
    catalog = Catalog.of(registry)
    health: HealthView | None = None
    records: tuple[Record, ...] = ()
    if settings.module_enabled and settings.policy.enabled:
        health, records = await _on_record(project)
    found = explain(request, complexity, settings.policy, settings.module_enabled, catalog, session, records)
    resolution = found.resolution
    runnable = bool(resolution.candidates)
    return WorkExplanation(
        role=request.role,
        complexity=complexity,
        decision=found.decision,
        meaning=DECISION_WORDS[found.decision] if runnable or found.decision == "off" else _NOTHING,
        asked=resolution.asked,
        rerouted=resolution.rerouted,
        candidates=tuple(_candidate(route, registry, health) for route in resolution.candidates),
        passed_over=resolution.others,
        refusal=resolution.refusal,
        history=sum(record.role == request.role for record in records),
    )


def _candidate(route: Route, registry: Registry, health: HealthView | None) -> Candidate:
    fingerprint = registry.readiness(route.adapter).fingerprint or None
    return Candidate(
        route=route,
        because={field: STEP_WORDS[step] for field, step in route.provenance.items()},
        health=None if health is None else _health(route, fingerprint, health),
        estimate=estimate(route, registry.descriptors[route.adapter]),
    )


def _health(route: Route, fingerprint: str | None, health: HealthView) -> PoolHealth:
    pool = next((pool for pool in health.pools if pool.pool == route.pool), None)
    mark = next((mark for mark in health.unavailable if mark.applies(route.adapter, fingerprint)), None)
    return PoolHealth(
        state=pool.state if pool else "healthy",
        recovery_s=pool.recovery_s if pool else 0,
        reason=pool.reason if pool else "",
        unavailable=mark.reason if mark else "",
    )


async def _on_record(project: Path) -> tuple[HealthView, tuple[Record, ...]]:
    async def read(connection: Connection) -> tuple[HealthView, tuple[Record, ...]]:
        return await read_health(connection, now()), await recorded(connection)

    async with ProjectFile(project) as file:
        return await file.look(read, (HealthView(), ()))
