"""Where a provider is an adapter's pool: a limit that a probe was told opens the pool, too."""

from __future__ import annotations

from collections.abc import Mapping

from custodes.adapters.port import Failure
from custodes.store import Connection
from custodes.supervision.pools.breaker import Pool, Settled, Ticket, decide
from custodes.supervision.pools.pool_table import load_pools, save_pools
from custodes.supervision.record.clock import Now

NOBODY = -1
"""The generation of a ticket that no pool ever gave: its report counts nothing and heals nothing, and its
stated wait opens a healthy pool, or lengthens a sick one's (the breaker's table, "old")."""


async def open_pools(connection: Connection, waits: Mapping[str, int], now: Now) -> None:
    """Keep work off these pools for the seconds that their provider stated. By the breaker's own rule."""
    if not waits:
        return
    known = await load_pools(connection, list(waits))
    changed = []
    for name, wait in waits.items():
        limit = Failure(
            category="capacity",
            reason="the overseer's probe met a limit",
            retryable=True,
            retry_after_s=wait,
            outcome="known_failed",
        )
        report = Settled(ticket=Ticket(pool=name, generation=NOBODY, attempt=""), failure=limit)
        pool, differs = decide(known.get(name) or Pool(name=name), report, now)
        if differs:
            changed.append(pool)
    await save_pools(connection, changed)
