"""A host that counts what its dispatches do: run as a program, since what it counts is the whole process's.

    python -m support.counted_host PROJECT BACKEND SIZE [--spans | --calls | --bytes]

Prints, as JSON, the work of ``SIZE`` children once the tree stands and some dispatches have gone through it:
what is asked of the system, of SQLite and of other threads; or the functions that the host's thread calls; or
the bytes that are allocated at most, and those that are left.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import anyio.to_thread
import ruamel.yaml

import custodes
import custodes.store.database
from custodes import Work
from custodes.store import Connection
from custodes.store.portal import PortalThread
from support import scripted

COUNTED: tuple[tuple[Any, str, str], ...] = (
    *((os, name, "stats") for name in ("stat", "lstat", "access", "listdir", "scandir", "readlink")),
    (Connection, "execute_fetchall", "statements"),
    (Connection, "executemany", "statements"),
    (aiosqlite.Connection, "_execute", "switches"),
    (custodes.store.database, "asked", "switches"),
    (custodes.store.database, "transacted", "commits"),
    (PortalThread, "submit", "hops"),
    (anyio.to_thread, "run_sync", "hops"),
    (ruamel.yaml.YAML, "load", "yaml"),
)


WARM = 20
"""Dispatches before: what is made once has been."""


class Count:
    """A context: what is done inside is counted."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.on = False
        for owner, name, what in COUNTED:
            setattr(owner, name, self._counted(getattr(owner, name), what))
        sys.addaudithook(self._opened)

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False

    def _counted(self, real: Callable[..., Any], what: str) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.on:
                self.of[what] += 1
            return real(*args, **kwargs)

        return counted

    def _opened(self, event: str, _: object) -> None:
        if self.on and event == "open":
            self.of["opens"] += 1


class Calls:
    """Of functions, Python's and C's."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def __enter__(self) -> None:
        sys.setprofile(self._called)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, _: object, event: str, __: object) -> None:
        self.of["calls"] += event in ("call", "c_call")


class Bytes:
    """Those of Python's own allocator, of every thread."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()  # at most is without a collection in the midst of it
        tracemalloc.start()

    def __exit__(self, *_: object) -> None:
        self.of["most"] = tracemalloc.get_traced_memory()[1]
        gc.collect()
        self.of["left"] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()


def count_spans(count: Count) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

    class Ended(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            count.of["spans"] += count.on

    provider = TracerProvider()
    provider.add_span_processor(Ended())
    trace.set_tracer_provider(provider)


async def main(project: Path, size: int, count: Count | Calls | Bytes) -> None:
    scripted.SCRIPTS[str(project)] = scripted.Script()
    work = Work(role="reviewer", prompt="look")
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        for _ in range(WARM):
            await parent.dispatch(work)
        with count:
            if size == 1:
                await parent.dispatch(work)
            else:
                await side_by_side(parent, work, size)


async def side_by_side(parent: custodes.Conversation, work: Work, size: int) -> None:
    async with parent.fan_out() as fan:
        for _ in range(size):
            fan.start(work)
    assert [outcome.status for outcome in fan.outcomes] == ["done"] * size


def counting(options: list[str]) -> Count | Calls | Bytes:
    if "--calls" in options:
        return Calls()
    if "--bytes" in options:
        return Bytes()
    count = Count()
    if "--spans" in options:
        count_spans(count)
    return count


if __name__ == "__main__":
    count = counting(sys.argv[4:])
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[3]), count, backend=sys.argv[2])
    print(json.dumps(count.of))
