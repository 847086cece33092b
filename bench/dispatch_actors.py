"""The floor of an actor system under ``bench/dispatch.py``: what is asked of a child that is an actor.

    python -m bench.dispatch_actors {asyncio|trio} [--spans]

The rows of ``bench/dispatch_floor.py``, 16 at a time, but each child an actor of ours that is told to begin
and looked at to its end; its row and its end asked of another, which commits what waits; the runtime that
does nothing called under a deadline, its result checked and its evidence read. Still no breaker, no policy,
no budget, no events, and no look at settings or adapters.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from bench.dispatch_floor import Child, SideBySide, committed, measure, row
from bench.dispatch_subject import MAX_PARALLEL, READ
from bench.noop.dispatch import NoOp
from custodes.actors import Actor, ActorRef, BatchActor, ChildEnd, ChildSpec, Message, Supervisor
from custodes.adapters.port import DispatchRequest, Progress
from custodes.supervision.dispatching.runtime_call import checked
from custodes.supervision.evidence import parse
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.records import AttemptRow


@dataclass(frozen=True, slots=True)
class Begins(Message[None]):
    row: AttemptRow


@dataclass(frozen=True, slots=True)
class Ends(Message[None]):
    row: AttemptRow


@dataclass(frozen=True, slots=True)
class Perform(Message[None]):
    pass


class Rows(BatchActor):
    batch_size = 128

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[None]:
        ended = [each.row for each in messages if isinstance(each, Ends)]
        started = [each.row for each in messages if isinstance(each, Begins)]
        await committed(self._connection, ended, started)
        return [None] * len(messages)


class Performer(Actor):
    def __init__(self, rows: ActorRef, runtime: NoOp, child: Child, leave: Callable[[], None]) -> None:
        self._rows = rows
        self._runtime = runtime
        self._child = child
        self._leave = leave

    async def receive(self, message: Perform) -> None:  # noqa: ARG002 - it says only that it is time
        at = row()
        await self._rows.ask(Begins(at))
        self._child(at)
        request = DispatchRequest(
            run_id=at.run_id, role=at.role, prompt=READ.prompt, mutable=False, cwd="", timeout_s=60
        )
        with anyio.CancelScope(deadline=anyio.current_time() + request.timeout_s):
            result = checked(await self._runtime.dispatch(request, unheard))
        parse("reviewer", result.text if result.structured is None else result.structured)
        self._leave()
        with anyio.CancelScope(shield=True):
            await self._rows.ask(Ends(at))
        self.context.stop()


def unheard(_: Progress) -> None:
    """Nobody looks at its progress."""


async def side_by_side(root: Supervisor, rows: ActorRef, child: Child, size: int) -> None:
    free, over, left = anyio.Semaphore(MAX_PARALLEL), anyio.Event(), size

    def ended(_: ChildEnd) -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set()

    start = partial(Performer, rows, NoOp(), child, free.release)
    for _ in range(size):
        await free.acquire()
        ref = root.start_child_soon(ChildSpec(new_id(), start, restart="temporary"))
        ref.tell(Perform())
        ref.monitor(ended)
    await over.wait()


@asynccontextmanager
async def actors(connection: sqlite3.Connection) -> AsyncIterator[SideBySide]:
    async with Supervisor() as root:
        rows = await root.start_child(ChildSpec("rows", partial(Rows, connection)))
        yield partial(side_by_side, root, rows)


if __name__ == "__main__":
    measure(actors)
