"""The stream of what happens in one conversation: numbered, kept in a window, read by anybody at any pace.

All readers share one bounded window, and each has a place in it. So a teller only ever appends: no reader,
however slow or however many, holds a child up or costs memory of its own. What has left the window before a
reader came to it is told to that reader as one :class:`~.EventsMissed`, and it goes on with what is kept.

Numbers count from 1 from when somebody first listened; before that no event is made, and none is counted.
"""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel

from custodes.supervision.events import Event, EventsMissed

EVENTS_KEPT = 4096
"""How many of a conversation's newest events are kept for its readers."""


class EventLog:
    """The newest events of one conversation. For one event loop; telling never waits.

    :param kept: the size of the window, in events.
    """

    def __init__(self, conversation: str, kept: int = EVENTS_KEPT) -> None:
        self.conversation = conversation
        self.listened = False
        """Whether somebody has ever read it: from then on every event is made."""
        self.closed: bool = False
        self.last: int = 0
        """The number of the newest event; 0 while there is none."""
        self.holders = 0
        """How many blocks of this conversation are open."""
        self._kept: deque[Event] = deque(maxlen=kept)
        self._news: anyio.Event | None = None

    def tell(self, event: type[Event], run_id: str, fields: dict[str, object]) -> Event:
        """Make the next event and wake whoever waits for it."""
        self.last += 1
        told = event(
            at=time.time(), conversation=self.conversation, run_id=run_id, sequence=self.last, **fields
        )
        self._kept.append(told)
        self._wake()
        return told

    def close(self) -> None:
        """Nothing more will be told: readers end once they have read what is kept. Idempotent."""
        self.closed = True
        self._wake()

    def after(self, sequence: int) -> Event | EventsMissed | None:
        """What a reader that has come to this number is told next; None while that has not happened."""
        if sequence >= self.last:
            return None
        oldest = self.last - len(self._kept) + 1
        if sequence + 1 < oldest:
            return EventsMissed(conversation=self.conversation, first=sequence + 1, last=oldest - 1)
        return self._kept[sequence + 1 - oldest]

    async def news(self) -> None:
        """Wait until something is told, or the log is closed."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None


class EventStream:
    """One reader of a conversation's events: ``async with`` it, then iterate. It ends with the conversation.

    A cancelled wait loses nothing: the next one goes on where this one stood. To go on later, or elsewhere,
    remember the ``sequence`` of what was read last and open another stream with ``since=`` that number.
    """

    def __init__(self, log: EventLog, since: int) -> None:
        self._log = log
        self._read = since
        self._open = False

    async def __aenter__(self) -> Self:
        """:raises ValueError: ``since`` is a number that this conversation has not come to."""
        if not 0 <= self._read <= self._log.last:
            raise ValueError(
                f"since={self._read}: the last event of conversation {self._log.conversation!r} here is "
                f"number {self._log.last}; 0 reads all that is kept"
            )
        self._log.listened = True
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | EventsMissed:
        """:raises RuntimeError: outside of its block."""
        if not self._open:
            raise RuntimeError("this stream is not open; iterate inside `async with conversation.events()`")
        await anyio.lowlevel.checkpoint()
        while (found := self._log.after(self._read)) is None:
            if self._log.closed:
                raise StopAsyncIteration
            await self._log.news()
        self._read = found.sequence
        return found
