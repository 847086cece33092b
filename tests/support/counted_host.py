"""A host that counts what its dispatches do: run as a program, since what it counts is the whole process's.

    python -m support.counted_host PROJECT BACKEND SIZE [--spans]

Prints, as JSON, the work of ``SIZE`` children once the tree stands and one dispatch has gone through it.
"""

from __future__ import annotations

import json
import os
import sys
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


class Count:
    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.on = False
        for owner, name, what in COUNTED:
            setattr(owner, name, self._counted(getattr(owner, name), what))
        sys.addaudithook(self._opened)

    def _counted(self, real: Callable[..., Any], what: str) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.on:
                self.of[what] += 1
            return real(*args, **kwargs)

        return counted

    def _opened(self, event: str, _: object) -> None:
        if self.on and event == "open":
            self.of["opens"] += 1


def count_spans(count: Count) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

    class Ended(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            count.of["spans"] += count.on

    provider = TracerProvider()
    provider.add_span_processor(Ended())
    trace.set_tracer_provider(provider)


async def main(project: Path, size: int, count: Count) -> None:
    scripted.SCRIPTS[str(project)] = scripted.Script()
    work = Work(role="reviewer", prompt="look")
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(work)
        count.on = True
        if size == 1:
            await parent.dispatch(work)
        else:
            async with parent.fan_out() as fan:
                for _ in range(size):
                    fan.start(work)
            assert [outcome.status for outcome in fan.outcomes] == ["done"] * size
        count.on = False


if __name__ == "__main__":
    count = Count()
    if "--spans" in sys.argv:
        count_spans(count)
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[3]), count, backend=sys.argv[2])
    print(json.dumps(count.of))
