"""The signals that ask a program to end: Ctrl-C, TERM, and HUP, whose terminal is gone."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskStatus

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@asynccontextmanager
async def heeding_signals(heed: Callable[[], object]) -> AsyncIterator[list[int]]:
    """While the block runs a signal ends nothing by itself: ``heed`` is called at each, in the loop.

    What it yields holds the numbers of those that came, in order. What the block raises comes out in a group.
    """
    heard: list[int] = []

    async def listen(*, task_status: TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(*ENDING) as signals:
            task_status.started()
            async for number in signals:
                heard.append(number)
                heed()

    async with anyio.create_task_group() as group:
        await group.start(listen)
        yield heard
        group.cancel_scope.cancel()
