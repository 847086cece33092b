"""An asyncio loop in a thread of its own, for code that only runs there, asked from any loop.

The thread is a daemon, and so is every thread that is started in it (a connection's). anyio's own
``start_blocking_portal`` takes a thread of an executor, which the interpreter waits for at exit before
anything could stop it: a host that forgot to close would hang for ever. Here it exits, as if it was killed,
which costs SQLite nothing that was committed. And to ask anyio's portal for a task waits until its thread has
begun it, which keeps the host's loop for as long as that thread is busy; here nobody waits.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from anyio.lowlevel import EventLoopToken

T = TypeVar("T")


class PortalThread:
    """Start and stop block for some milliseconds: call both off the host's loop."""

    def __init__(self, name: str) -> None:
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._told_to_stop = asyncio.Event()  # it binds itself to the portal's loop at its first wait
        self._turn = threading.Lock()
        self._stopping = False
        self._running: set[asyncio.Future[None]] = set()
        """A loop holds its tasks by weak references alone."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def running(self) -> bool:
        """False in a fork of the process, too."""
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()
        self._started.result()

    def submit(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object) -> Future[T]:
        """Start a coroutine in the portal, without waiting for its thread. Whoever waits for the answer may
        go: it runs to its end.

        :raises RuntimeError: the portal does not run, or is about to stop.
        """
        if not self.running:
            raise RuntimeError("the portal does not run")
        answer: Future[T] = Future()
        with self._turn:
            if self._stopping:
                raise RuntimeError("the portal is about to stop")
            # Made there, and not here: an interrupt on the way would leave a coroutine that nobody awaits.
            begin = partial(self._begin, function, arguments, answer)
            self._started.result().call_soon_threadsafe(begin)
        return answer

    def stop(self) -> None:
        """Wait for what runs, and end the thread. Idempotent."""
        if not self.running:
            return
        with self._turn:
            if not self._stopping:
                self._stopping = True
                # In order: all that was submitted has begun by the time it is told.
                self._started.result().call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join()

    def _begin(
        self,
        function: Callable[..., Coroutine[Any, Any, T]],
        arguments: tuple[object, ...],
        answer: Future[T],
    ) -> None:
        task = asyncio.ensure_future(_answer(function, arguments, answer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        self._started.set_result(asyncio.get_running_loop())
        await self._told_to_stop.wait()
        while running := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(running)


async def _answer(
    function: Callable[..., Coroutine[Any, Any, T]], arguments: tuple[object, ...], answer: Future[T]
) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(await function(*arguments))
    except BaseException as error:
        answer.set_exception(error)
        del answer  # the error holds this frame


def run_soon(token: EventLoopToken, function: Callable[[], object]) -> None:
    """Have the loop of this token call the function in its next pass; may be called from any thread.

    It is what anyio's own portal uses to reach a loop; there is no public name for it.

    :raises RuntimeError: the loop is gone (anyio's RunFinishedError is one, too).
    """
    token.backend_class.run_sync_soon(function, (), token.native_token)


async def outcome_of(future: Future[T], within_s: float = math.inf) -> T:
    """Wait, on the host's loop, for a future of another thread; work that has begun is never cancelled.

    The wait is shielded: it ends when the work does. A native asyncio cancel pierces the shield; then the
    work goes on and its outcome is dropped.

    :raises concurrent.futures.CancelledError: it had not begun after ``within_s`` seconds, and never will.
    """
    done = anyio.Event()
    token = anyio.lowlevel.current_token()

    def wake(_: Future[T]) -> None:
        try:
            run_soon(token, done.set)
        except RuntimeError:  # the host's loop is gone, and nobody waits
            return

    future.add_done_callback(wake)
    # Most wait for what has begun, and a timer of the loop's is a good part of what a wait costs.
    bound = (
        anyio.CancelScope(shield=True) if within_s == math.inf else anyio.move_on_after(within_s, shield=True)
    )
    with bound:
        await done.wait()
    if bound.cancelled_caught and not future.cancel():
        with anyio.CancelScope(shield=True):
            await done.wait()
    try:
        return future.result()
    finally:
        del future  # its error would hold this frame, and this frame it
