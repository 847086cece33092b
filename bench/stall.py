"""How long the host's loop is kept from coming round."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio

from bench.suite.contender import Figures

TICK_S = 0.0005


async def longest_stall(work: Callable[[], Awaitable[object]]) -> Figures:
    """The longest time for which the host's loop did not come round while ``work`` ran.

    ``seconds`` by the clock, and ``cpu``: the most that the process worked before it came round, on any
    thread, since the loop waits for whichever holds the interpreter. On a machine with nothing else to do the
    two are near one another; on any other the clock tells of its other work, too.
    """
    seconds = cpu = 0.0

    async def come_round() -> None:
        nonlocal seconds, cpu
        last, used = time.perf_counter(), time.process_time()
        while True:
            await anyio.sleep(TICK_S)
            current, using = time.perf_counter(), time.process_time()
            seconds, cpu = max(seconds, current - last - TICK_S), max(cpu, using - used)
            last, used = current, using

    async with anyio.create_task_group() as group:
        group.start_soon(come_round)
        await anyio.sleep(0.05)
        seconds = cpu = 0.0
        await work()
        await anyio.sleep(2 * TICK_S)  # a stall that lasts to the end of the work counts, too
        group.cancel_scope.cancel()
    return {"seconds": seconds, "cpu": cpu}
