"""The portal's thread, and the one function that wakes a host's loop."""

from __future__ import annotations

import _weakrefset
import asyncio
import sys
import threading
import warnings
from concurrent.futures import Future
from itertools import count
from types import FrameType
from typing import Any

import anyio
import anyio.to_thread
import pytest

from custodes.store import portal as portal_module
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


def test_to_submit_waits_for_nothing_that_the_portal_does() -> None:
    """It is called on the host's loop, which must not stand still while the portal's thread is busy."""
    portal = PortalThread("test-portal")
    portal.start()
    begun, let_go = threading.Event(), threading.Event()

    async def busy() -> None:
        begun.set()
        let_go.wait()

    async def answer() -> int:
        return 7

    try:
        portal.submit(busy)
        begun.wait()
        later = portal.submit(answer)  # its thread is in the middle of something
        assert not later.done()
    finally:
        let_go.set()
    assert later.result() == 7
    portal.stop()


def test_what_was_submitted_before_the_stop_runs_to_its_end() -> None:
    portal = PortalThread("test-portal")
    portal.start()

    async def slow() -> int:
        for _ in range(100):
            await asyncio.sleep(0)
        return 7

    futures = [portal.submit(slow) for _ in range(10)]
    portal.stop()
    assert [future.result(0) for future in futures] == [7] * 10


def test_an_interrupt_at_any_line_of_a_submit_leaves_no_coroutine_behind() -> None:
    portal = PortalThread("interrupted")
    portal.start()
    begun = list[int]()

    async def work(number: int) -> None:
        begun.append(number)

    def interrupted_at(line: int) -> bool:
        lines = count()

        def trace(frame: FrameType, event: str, _: object) -> Any:
            if frame.f_code.co_filename in (_weakrefset.__file__, threading.__file__, portal_module.__file__):
                return (
                    None  # a real interrupt never comes where the line of a `with` ends, and a traced one may
                )
            if event == "line" and next(lines) == line:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            portal.submit(work, line)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            line = 0
            while interrupted_at(line):
                line += 1
    finally:
        portal.stop()
    assert [str(warning.message) for warning in told] == []
    assert line > 5
    assert begun == sorted(set(begun))
    assert begun[-1] == line
