"""A bounded mailbox: full is an error for the sender, never a wait.

It belongs to the child, not to one incarnation of its actor, so that a ref outlives a restart. Each
incarnation reads it until it is told to leave; what waits when an incarnation is lost is failed, since it
was said to somebody who is gone, and what comes between two incarnations waits for the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress

import anyio
from anyio.lowlevel import checkpoint

from .envelope import Envelope
from .errors import ActorStopped, MailboxFull


class Mailbox:
    __slots__ = (
        "_leaving",
        "_path",
        "_queue",
        "_refusal",
        "_untouched",
        "_wakeup",
        "capacity",
        "refused",
        "undelivered",
    )

    def __init__(self, path: str, capacity: int) -> None:
        self._path = path
        self._queue: deque[Envelope] = deque()
        self._refusal: str | None = None
        self._leaving = False
        self._untouched = True
        self._wakeup: anyio.Event | None = None
        self.capacity: int = capacity
        self.refused: int = 0
        """Messages that found it full."""
        self.undelivered: int = 0
        """Messages accepted that no actor took: their incarnation was lost first."""

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, envelope: Envelope) -> None:
        """:raises ActorStopped: it is closed for good.
        :raises MailboxFull: ``capacity`` messages wait.
        """
        if self._refusal is not None:
            raise ActorStopped(self._path, self._refusal)
        if len(self._queue) >= self.capacity:
            self.refused += 1
            raise MailboxFull(self._path, self.capacity)
        self._queue.append(envelope)
        if self._wakeup is not None:
            self._wakeup.set()

    def withdraw(self, envelope: Envelope) -> None:
        """Take back a message that was not begun; do nothing if it was. (At most ``capacity`` steps.)"""
        with suppress(ValueError):
            self._queue.remove(envelope)

    async def get(self) -> Envelope | None:
        """The next message, or None when the incarnation is to leave.

        A checkpoint before each message but an incarnation's first, to which its task has just come, so that
        an actor that never awaits can neither starve the loop nor take up a message after it was cancelled.
        It comes before the wait, too: with asyncio, an asker has often asked again by then, and a bare
        checkpoint is cheaper than an event (14 µs against 19 an ask).
        """
        return self._queue.popleft() if await self._filled() else None

    async def get_batch(self, limit: int) -> list[Envelope]:
        """Everything that waits, up to ``limit``; empty when the incarnation is to leave.

        It is taken once two passes of the loop bring no more: what many tasks say in one breath is one batch,
        whichever of them said it first (a batch is a commit to the disk, a pass some microseconds). One pass
        would not do: trio runs the tasks of a pass in order or in reverse, so that whoever was last in one
        and is first in the next sees no news, though others have yet to speak. News is what makes it longer
        than it ever was: those who ask and give up by turns keep nobody waiting.
        """
        queue = self._queue
        while await self._filled():
            quiet, most = 0, len(queue)
            while quiet < 2 and len(queue) < limit:
                await checkpoint()
                quiet = quiet + 1 if len(queue) <= most else 0
                most = max(most, len(queue))
            if queue and not self._leaving:
                return [queue.popleft() for _ in range(min(limit, len(queue)))]
        return []

    async def _filled(self) -> bool:
        """Wait for a message; False when the incarnation is to leave."""
        if not self._leaving and not self._untouched:
            await checkpoint()
        self._untouched = False
        while not self._leaving:
            if self._queue:
                return True
            self._wakeup = anyio.Event()
            await self._wakeup.wait()
        return False

    def leave(self) -> None:
        """The present incarnation's reader gets no more messages."""
        self._leaving = True
        if self._wakeup is not None:
            self._wakeup.set()

    def reopen(self, capacity: int) -> None:
        """For the next incarnation."""
        self.capacity = capacity
        self._leaving = False
        self._untouched = True
        self._refusal = None

    def refuse(self, reason: str) -> None:
        """Closed for good: senders get :exc:`ActorStopped` with this reason."""
        if self._refusal is None:
            self._refusal = reason

    def fail_waiting(self, error: Callable[[], Exception]) -> None:
        """Fail every message that waits, each with an error of its own."""
        while self._queue:
            envelope = self._queue.popleft()
            self.undelivered += 1
            if envelope.reply is not None:
                envelope.reply.fail(error())
