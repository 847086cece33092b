"""The adapters page as data: each adapter with its pools, its health and what it can do. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from custodes.adapters.check import LACKING, AdapterCheck
from custodes.adapters.descriptor import CAPABILITIES
from custodes.adapters.registry import Registry
from custodes.policy.overview import Overview
from custodes.supervision.pools.health_report import HealthReport
from custodes.supervision.pools.health_view import AdapterHealth, PoolView


class AdapterNow(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter as it stands. ``agent``: the project names it; ``pools`` are those that were ever limited;
    ``check`` is what a person last had checked here, ``lacks`` what each missing capability means."""

    id: str
    label: str
    origin: str
    provider: str
    agent: bool
    eligible: bool
    ready: bool
    reason: str
    health: AdapterHealth
    pools: tuple[PoolView, ...]
    models: tuple[str, ...]
    any_model: bool
    efforts: tuple[str, ...]
    capabilities: tuple[str, ...]
    lacks: dict[str, str]
    program: str
    check: AdapterCheck | None

    @property
    def state(self) -> str:
        """One word for all of it, the worst first."""
        if self.health.unavailable is not None or (self.agent and not self.ready):
            return "unavailable"
        return self.health.state if self.agent else "not configured"


def adapters_now(
    overview: Overview, report: HealthReport, registry: Registry, checks: Mapping[str, AdapterCheck]
) -> tuple[AdapterNow, ...]:
    """The project's agents in their order, then every other adapter that something is known of, then what
    else there is."""
    views = {view.id: view for view in overview.adapters}
    health = {each.adapter: each for each in report.adapters}
    names = dict.fromkeys((*views, *health, *registry.descriptors))
    return tuple(
        _adapter(name, registry, views, health.get(name, AdapterHealth(adapter=name)), report.pools, checks)
        for name in names
    )


def _adapter(
    name: str,
    registry: Registry,
    views: Mapping[str, object],
    health: AdapterHealth,
    pools: tuple[PoolView, ...],
    checks: Mapping[str, AdapterCheck],
) -> AdapterNow:
    found = registry.descriptors.get(name)
    readiness = registry.readiness(name)
    able = found is not None and found.can("dispatch")
    return AdapterNow(
        id=name,
        label=(found.label if found else "") or name,
        origin=found.origin if found else "",
        provider=found.provider if found else "",
        agent=name in views,
        eligible=name in views and able,
        ready=readiness.ready and able,
        reason=readiness.reason if able or found is None else "it does not declare dispatch",
        health=health,
        pools=tuple(pool for pool in pools if pool.adapter == name),
        models=tuple(model.id for model in found.models) if found else (),
        any_model=found is not None and found.can("model_selection") and not found.models,
        efforts=found.efforts if found and found.can("effort_selection") else (),
        capabilities=tuple(found.runtime_entrypoints.capabilities) if found else (),
        lacks={each: LACKING[each] for each in CAPABILITIES if not found.can(each)} if found else {},
        program=found.cli.binary if found and found.cli else "",
        check=checks.get(name),
    )


def due_s(adapters: tuple[AdapterNow, ...]) -> int | None:
    """Seconds until one of them changes by itself: a wait, a probe's lease or a mark ends."""
    waits = [
        seconds
        for adapter in adapters
        for pool in adapter.pools
        for seconds in (pool.recovery_s, pool.lease_remaining_s, pool.mark_remaining_s)
        if seconds > 0
    ]
    return min(waits, default=None)
