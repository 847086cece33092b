"""An asyncio loop in a thread of its own, for code that only runs there, asked from any loop.

The thread is a daemon, and so is every thread that is started in it (a connection's). anyio's own
``start_blocking_portal`` takes a thread of an executor, which the interpreter waits for at exit before
anything could stop it: a host that forgot to close would hang for ever. Here it exits, as if it was killed,
which costs SQLite nothing that was committed.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio
import anyio.lowlevel
from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class PortalThread:
    """Start and stop block for some milliseconds: call both off the host's loop."""

    def __init__(self, name: str) -> None:
        self._started: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def running(self) -> bool:
        """False in a fork of the process, too."""
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()
        self._started.result()

    def submit(self, function: Callable[..., Awaitable[T]], *arguments: object) -> Future[T]:
        """Start a coroutine in the portal. Whoever waits for it may go: it runs to its end.

        :raises RuntimeError: the portal does not run.
        """
        if not self.running:
            raise RuntimeError("the portal does not run")
        return self._started.result().start_task_soon(function, *arguments)

    def stop(self) -> None:
        """Wait for what runs, and end the thread. Idempotent."""
        if self.running:
            portal = self._started.result()
            portal.call(portal.stop)
            self._thread.join()

    def _run(self) -> None:
        try:
            anyio.run(self._serve, backend="asyncio")
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        async with BlockingPortal() as portal:
            self._started.set_result(portal)
            await portal.sleep_until_stopped()


async def outcome_of(future: Future[T]) -> T:
    """Wait, on the host's loop, for a future of another thread; its work is never cancelled.

    The wait is shielded: it ends when the work does. A native asyncio cancel pierces the shield; then the
    work goes on and its outcome is dropped.
    """
    done = anyio.Event()
    token = anyio.lowlevel.current_token()

    def wake(_: Future[T]) -> None:
        try:
            # What anyio's own portal uses to reach a loop; there is no public name for it.
            token.backend_class.run_sync_soon(done.set, (), token.native_token)
        except RuntimeError:  # the host's loop is gone, and nobody waits (anyio.RunFinishedError is one, too)
            return

    future.add_done_callback(wake)
    with anyio.CancelScope(shield=True):
        await done.wait()
    return future.result()
