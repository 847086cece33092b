"""How the pools stand, for people and surfaces: views, and an adapter's summary over its pools. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from custodes.supervision.pools.breaker import Pool
from custodes.supervision.record.clock import Now, whole_seconds
from custodes.supervision.work import PoolState

_RESTRICTIVENESS: tuple[PoolState, ...] = ("healthy", "half_open", "cooling_down")


class Unavailability(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter that waits for a person: it stays so while its readiness fingerprint is the same.
    ``since`` is wall seconds since the epoch."""

    adapter: str
    fingerprint: str | None
    category: str
    reason: str
    since: float

    def applies(self, adapter: str, fingerprint: str | None) -> bool:
        return self.adapter == adapter and self.fingerprint == fingerprint


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    """One pool, with whole seconds left: until it may let somebody in, of its probe's lease, of its mark."""

    pool: str
    adapter: str
    state: PoolState
    recovery_s: int
    failure_count: int
    lease_remaining_s: int
    mark_remaining_s: int
    generation: int
    reason: str


class HealthView(msgspec.Struct, frozen=True, kw_only=True):
    pools: tuple[PoolView, ...] = ()
    unavailable: tuple[Unavailability, ...] = ()


class AdapterHealth(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter over its pools: the most restrictive state, the soonest recovery (None where nothing
    waits), and which pools are limited (seed, "What a limit actually applies to")."""

    adapter: str
    state: PoolState = "healthy"
    recovery_s: int | None = None
    limited: tuple[str, ...] = ()
    unavailable: Unavailability | None = None


def adapter_of(pool: str) -> str:
    return pool.partition(":")[0]


def pool_view(pool: Pool, now: Now) -> PoolView:
    return PoolView(
        pool=pool.name,
        adapter=adapter_of(pool.name),
        state=pool.state(now),
        recovery_s=_left(pool.recovery(now)),
        failure_count=pool.failure_count,
        lease_remaining_s=_left(pool.lease_remaining(now)),
        mark_remaining_s=_left(pool.mark.remaining(now) if pool.mark else 0.0),
        generation=pool.generation,
        reason=pool.reason,
    )


def view(pools: Iterable[Pool], unavailable: Iterable[Unavailability], now: Now) -> HealthView:
    """``pools`` and ``unavailable`` by name."""
    return HealthView(
        pools=tuple(pool_view(pool, now) for pool in sorted(pools, key=lambda pool: pool.name)),
        unavailable=tuple(sorted(unavailable, key=lambda mark: mark.adapter)),
    )


def summarize(adapter: str, fingerprint: str | None, health: HealthView) -> AdapterHealth:
    """Healthy also where nothing was ever recorded of it. ``fingerprint`` is its readiness now: an
    unavailability of another one is over."""
    limited = [pool for pool in health.pools if pool.adapter == adapter and pool.state != "healthy"]
    return AdapterHealth(
        adapter=adapter,
        state=max((pool.state for pool in limited), key=_RESTRICTIVENESS.index, default="healthy"),
        recovery_s=min((pool.recovery_s for pool in limited), default=None),
        limited=tuple(pool.pool for pool in limited),
        unavailable=next((mark for mark in health.unavailable if mark.applies(adapter, fingerprint)), None),
    )


def _left(seconds: float) -> int:
    return whole_seconds(seconds) if seconds > 0 else 0
