"""Custodes as a contender of ``bench/dispatch.py``, and bare tasks as the floor under it.

    python -m bench.dispatch_subject {custodes|tasks} {asyncio|trio} [--spans]

Everything is real but the runtime: the project's files, its settings, an installed adapter, the store with
its commits to the disk. The tree stands before the clock starts, and one dispatch has gone through it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil

from bench.stall import longest_stall
from bench.suite.contender import Figures, Spent, serve
from custodes import Conversation, Supervision, Work

MAX_PARALLEL = 16
"""The most that the policy lets run at once."""
READ = Work(role="reviewer", prompt="Review the change.")
WRITE = Work(role="implementer", prompt="Make the change.", scope=("src",))


def install(folder: Path) -> Path:
    """A project whose only adapter is the installed one that does nothing."""
    site = folder / "site" / "noop-1.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: noop\nVersion: 1\n")
    (site / "entry_points.txt").write_text("[custodes.adapters]\nnoop = bench.noop\n")
    sys.path.append(str(site.parent))
    project = folder / "project"
    (project / ".coding-os").mkdir(parents=True)
    (project / ".coding-os.yaml").write_text("agents: [noop]\n")
    settings = {"model_routing": {"enabled": True, "max_parallel": MAX_PARALLEL}}
    (project / ".coding-os" / "hub-settings.json").write_text(json.dumps(settings))
    return project


@asynccontextmanager
async def conversation(project: Path) -> AsyncIterator[Conversation]:
    async with Supervision(project) as supervision, supervision.conversation("bench") as parent:
        await parent.dispatch(READ)
        yield parent


async def one(project: Path, times: int, work: Work) -> Figures:
    spent = Spent()
    async with conversation(project) as parent:
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    outcome = await parent.dispatch(work)
                    assert outcome.status == "done", outcome
    return spent.figures()


async def fan_out(project: Path, size: int) -> Figures:
    spent = Spent()
    async with conversation(project) as parent:
        while not spent.enough:
            with spent.counting(size):
                await side_by_side(parent, size)
    return spent.figures()


async def side_by_side(parent: Conversation, size: int) -> None:
    async with parent.fan_out() as fan:
        for _ in range(size):
            fan.start(READ)
    assert all(outcome.status == "done" for outcome in fan.outcomes)


async def stall(project: Path, size: int) -> Figures:
    """Asked for as a host would that lets its loop come round: not all from one step of it."""

    async def work() -> None:
        async with parent.fan_out() as fan:
            for number in range(size):
                fan.start(READ)
                if number % 16 == 15:
                    await anyio.lowlevel.checkpoint()

    async with conversation(project) as parent:
        return await longest_stall(work)


async def alive(project: Path, size: int) -> Figures:
    """Resident bytes that each live child adds: an actor, at work or in the line for its scope."""
    return {"bytes": await _bytes_each(project, size, WRITE, alive=size)}


async def queued(project: Path, size: int) -> Figures:
    """Resident bytes that each child adds that was asked for and waits for its turn."""
    return {"bytes": await _bytes_each(project, size, READ, alive=MAX_PARALLEL)}


async def _bytes_each(project: Path, size: int, work: Work, alive: int) -> float:
    async with conversation(project) as parent:
        runtime: Any = parent.supervision.registry().runtime("noop")
        children = await parent.children(await parent.supervision.tree())
        await side_by_side(parent, 100)
        runtime.held = anyio.Event()
        before = psutil.Process().memory_info().rss
        async with parent.fan_out() as fan:
            for number in range(size):
                fan.start(work)
                if number % 100 == 99:
                    await anyio.lowlevel.checkpoint()
            while children.statistics().dynamic_below < alive:  # noqa: ASYNC110 - no event tells
                await anyio.sleep(0.05)
            after = psutil.Process().memory_info().rss
            runtime.held.set()
            runtime.held = None
        return (after - before) / size


async def nothing() -> None:
    """What a bare task does."""


async def one_task(_: Path, times: int) -> Figures:
    spent = Spent()
    while not spent.enough:
        with spent.counting(times):
            for _number in range(times):
                await tasks(1)
    return spent.figures()


async def many_tasks(_: Path, size: int) -> Figures:
    spent = Spent()
    while not spent.enough:
        with spent.counting(size):
            await tasks(size)
    return spent.figures()


async def tasks(count: int) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(nothing)


def in_a_process_of_its_own(case: str, size: int) -> Figures:
    """What an earlier case has left in this one's memory would be used again, and not be seen to grow."""
    command = [sys.executable, "-m", "bench.dispatch_subject", *sys.argv[1:], "--alone", case, str(size)]
    answered = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(answered.stdout)
    return figures


def trace() -> None:
    """The SDK as a host configures it, into an exporter that drops what it gets.

    The queue takes every span of the largest run: one that is dropped would cost nothing.
    """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Dropped(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - dropped
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Dropped(), max_queue_size=65_536))
    trace.set_tracer_provider(provider)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["custodes", "tasks"])
    parser.add_argument("backend", choices=["asyncio", "trio"])
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--alone", nargs=2, metavar=("CASE", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.spans:
        trace()
    cases: dict[str, Callable[[Path, int], Awaitable[Figures]]] = {
        "one": partial(one, work=READ),
        "one mutable": partial(one, work=WRITE),
        "fan-out": fan_out,
        "stall": stall,
        "alive": alive,
        "queued": queued,
    }
    if options.subject == "tasks":
        cases = {"one": one_task, "fan-out": many_tasks}
    with tempfile.TemporaryDirectory() as folder:
        project = install(Path(folder))

        def measured(case: Callable[[Path, int], Awaitable[Figures]], size: int) -> Figures:
            return anyio.run(case, project, size, backend=options.backend)

        if options.alone:
            case, size = options.alone
            print(json.dumps(measured(cases[case], int(size))))
            return
        what = version("custodes" if options.subject == "custodes" else "anyio")
        told = {name: partial(measured, case) for name, case in cases.items()}
        told |= {
            name: partial(in_a_process_of_its_own, name) for name in ("alive", "queued") if name in cases
        }
        serve(what, told)


if __name__ == "__main__":
    main()
