"""The portal's thread, and the one function that wakes a host's loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import anyio
import anyio.to_thread
import pytest

from custodes.store.portal import PortalThread, outcome_of


@pytest.mark.anyio
async def test_a_future_of_another_thread_wakes_the_hosts_loop() -> None:
    future: Future[int] = Future()
    threading.Thread(target=future.set_result, args=(7,)).start()
    assert await outcome_of(future) == 7


@pytest.mark.anyio
async def test_a_future_that_is_done_already_wakes_too() -> None:
    future: Future[int] = Future()
    future.set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await outcome_of(future)


def test_a_future_may_end_after_the_hosts_loop_is_gone() -> None:
    future: Future[int] = Future()

    async def host() -> None:
        task = asyncio.ensure_future(outcome_of(future))
        await asyncio.sleep(0)
        task.cancel()  # a native cancel pierces the shield

    asyncio.run(host())
    future.set_result(1)


@pytest.mark.anyio
async def test_the_portal_runs_asyncio_whatever_the_host_is() -> None:
    portal = PortalThread("test-portal")
    await anyio.to_thread.run_sync(portal.start)

    async def name() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert (await outcome_of(portal.submit(name))).startswith("asyncio")
    await anyio.to_thread.run_sync(portal.stop)
    await anyio.to_thread.run_sync(portal.stop)
    with pytest.raises(RuntimeError):
        portal.submit(name)
