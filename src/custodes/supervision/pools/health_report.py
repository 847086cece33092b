"""The health of a project's adapters and pools as one document, the same on every surface."""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters.registry import Registry
from custodes.supervision.pools.health_file import HealthFile
from custodes.supervision.pools.health_view import AdapterHealth, HealthView, PoolView, summarize


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """``adapters``: every agent of the project, and every other adapter that something is known of."""

    adapters: tuple[AdapterHealth, ...]
    pools: tuple[PoolView, ...]


def report_of(health: HealthView, registry: Registry) -> HealthReport:
    known = [*(pool.adapter for pool in health.pools), *(mark.adapter for mark in health.unavailable)]
    return HealthReport(
        adapters=tuple(
            summarize(adapter, registry.readiness(adapter).fingerprint or None, health)
            for adapter in dict.fromkeys([*registry.agents, *known])
        ),
        pools=health.pools,
    )


async def health_report(project: Path) -> HealthReport:
    """As the project's file stands now; it is only read.

    :raises StoreError: the file cannot be read.
    """
    async with HealthFile(project) as file:
        return report_of(await file.read(), Registry.discover(project))
