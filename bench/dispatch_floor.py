"""The floor under ``bench/dispatch.py``: what is asked of a child that nobody could leave out, by hand.

    python -m bench.dispatch_floor {asyncio|trio} [--spans]

Bare tasks, 16 at a time, each with its row on the disk before it begins and its end on the disk after it:
the same columns and indices as ours, the ends of some and the starts of the next in one transaction, in a
worker thread. With spans: the same three of a child, by the SDK alone. No actor, no breaker, no policy, no
budget, no evidence, no cancel.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio
import anyio.to_thread
from opentelemetry import trace as otel
from opentelemetry.trace import Span, Tracer

from bench.dispatch_subject import MAX_PARALLEL, trace
from bench.suite.contender import Figures, Spent, serve
from custodes.adapters.port import Usage
from custodes.store import Connection
from custodes.store.connection import transacted
from custodes.supervision.record import records
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.records import AttemptEnd, AttemptRow, closed
from custodes.supervision.record.schema import MIGRATIONS
from custodes.telemetry import shapes
from custodes.telemetry.shapes import Shape
from custodes.telemetry.values import clean

Child = Callable[[AttemptRow], None]
SideBySide = Callable[[Child, int], Awaitable[None]]
Standing = Callable[[sqlite3.Connection], AbstractAsyncContextManager[SideBySide]]
"""What makes so many children, from what stands before the first of them."""
END = AttemptEnd(usage=Usage(input_tokens=100, output_tokens=10))


def row() -> AttemptRow:
    return AttemptRow(
        run_id=new_id(), number=1, conversation="bench", role="reviewer", adapter="noop", pool="noop:large"
    )


def untraced(_: AttemptRow) -> None:
    """What a child does."""


def traced(row: AttemptRow, tracer: Tracer, root: Span) -> None:
    """The child, its attempt and the call of its runtime."""
    attempt = shapes.attempt(
        number=1, adapter="noop", pool=row.pool, health_state="healthy", probe=False, fallback_reason=None
    )
    call = shapes.call(role=row.role, provider="", adapter="noop", model="large", effort="low")
    with (
        begun(tracer, shapes.child(row.role, row.run_id, ""), root) as child,
        begun(tracer, attempt, child) as tried,
        begun(tracer, call, tried) as called,
    ):
        called.set_attributes(clean(shapes.known(input_tokens=100, output_tokens=10, tool_calls=0)))


def begun(tracer: Tracer, shape: Shape, above: Span) -> Span:
    return tracer.start_span(
        shape.name, context=otel.set_span_in_context(above), attributes=clean(shape.attributes)
    )


async def committed(
    connection: sqlite3.Connection, ended: Sequence[AttemptRow], started: Sequence[AttemptRow]
) -> None:
    async def fold(into: Connection) -> None:
        await records.by_id(into, [row.id for row in ended])
        await records.update(into, (closed(row, None, END, 1.0) for row in ended))
        await records.insert(into, started)

    await anyio.to_thread.run_sync(transacted, connection, fold)


async def side_by_side(connection: sqlite3.Connection, child: Child, size: int) -> None:
    async def perform(row: AttemptRow) -> None:
        child(row)

    ended: list[AttemptRow] = []
    for first in range(0, size, MAX_PARALLEL):
        started = [row() for _ in range(min(MAX_PARALLEL, size - first))]
        await committed(connection, ended, started)
        async with anyio.create_task_group() as group:
            for each in started:
                group.start_soon(perform, each)
        ended = started
    await committed(connection, ended, [])


@asynccontextmanager
async def tasks(connection: sqlite3.Connection) -> AsyncIterator[SideBySide]:
    yield partial(side_by_side, connection)


async def one(standing: Standing, connection: sqlite3.Connection, child: Child, times: int) -> Figures:
    spent = Spent()
    async with standing(connection) as children:
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    await children(child, 1)
    return spent.figures()


async def fan_out(standing: Standing, connection: sqlite3.Connection, child: Child, size: int) -> Figures:
    spent = Spent()
    async with standing(connection) as children:
        while not spent.enough:
            with spent.counting(size):
                await children(child, size)
    return spent.figures()


def opened(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
        connection.execute(statement)
    for migration in MIGRATIONS:
        for statement in migration:
            connection.execute(statement)
    return connection


def measure(standing: Standing) -> None:
    """Answer as a contender whose children are made so."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=["asyncio", "trio"])
    parser.add_argument("--spans", action="store_true")
    options = parser.parse_args()
    child: Child = untraced
    if options.spans:
        trace()
        tracer = otel.get_tracer("bench")
        child = partial(traced, tracer=tracer, root=tracer.start_span("bench"))
    with tempfile.TemporaryDirectory() as folder, closing(opened(Path(folder))) as connection:

        def measured(case: Callable[..., Awaitable[Figures]], size: int) -> Figures:
            return anyio.run(case, connection, child, size, backend=options.backend)

        cases = {"one": partial(one, standing), "fan-out": partial(fan_out, standing)}
        serve(version("anyio"), {name: partial(measured, case) for name, case in cases.items()})


if __name__ == "__main__":
    measure(tasks)
