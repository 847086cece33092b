"""Where the native threads of a run's attempts stand on this machine, and what goes on with them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters import AdapterError, Registry, Transcript
from custodes.supervision.record.run_view import RunView


class Thread(Transcript, frozen=True, kw_only=True):
    """The thread of one attempt. ``place`` and ``command`` are empty where nothing is known of them: also
    where its adapter is gone, broken or untrusted."""

    attempt: int
    adapter: str
    native_thread_id: str


class ShownRun(RunView, frozen=True, kw_only=True):
    """A run, and the threads of those of its attempts that have one."""

    threads: tuple[Thread, ...]


def with_threads(run: RunView, project: Path) -> ShownRun:
    """Runs nothing and reads no transcript."""
    known = [
        (row.number, row.adapter, row.native_thread_id)
        for row in run.attempts
        if row.adapter is not None and row.native_thread_id is not None
    ]
    registry = Registry.discover(project) if known else None
    threads = tuple(_thread(registry, *each) for each in known) if registry else ()
    return ShownRun(**msgspec.structs.asdict(run), threads=threads)


def _thread(registry: Registry, attempt: int, adapter: str, native_id: str) -> Thread:
    try:
        found = registry.transcript(adapter, native_id)
    except AdapterError:
        found = Transcript()
    return Thread(
        attempt=attempt,
        adapter=adapter,
        native_thread_id=native_id,
        place=found.place,
        command=found.command,
    )
