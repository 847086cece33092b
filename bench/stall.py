"""How long the host's loop is kept from coming round."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio

TICK_S = 0.0005


async def longest_stall(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time, in seconds, for which the host's loop did not come round while ``work`` ran."""
    worst = 0.0

    async def come_round() -> None:
        nonlocal worst
        last = time.perf_counter()
        while True:
            await anyio.sleep(TICK_S)
            current = time.perf_counter()
            worst, last = max(worst, current - last - TICK_S), current

    async with anyio.create_task_group() as group:
        group.start_soon(come_round)
        await anyio.sleep(0.05)
        worst = 0.0
        await work()
        await anyio.sleep(2 * TICK_S)  # a stall that lasts to the end of the work counts, too
        group.cancel_scope.cancel()
    return worst
