"""What a dispatch costs through everything, beside what others take for a child that does nothing.

Measured, for a runtime that returns at once (``bench/noop``): one dispatch after another; fan-outs of 16, 64,
1,000 and 10,000 children; the longest time for which the host's loop did not come round during one; the
resident memory that each of 10,000 children adds that were asked for, and each of 1,000 that live (writers in
the line for one scope: what only reads is no actor before there is room for it). Each on asyncio and on trio,
without spans and, but for the largest fan-out, with them (the SDK, its batch processor, an exporter that
drops them). All of it is what a host gets: the settings and the adapters are looked at for each child, a
dispatch is admitted and settled in the project's file with a commit to the disk (WAL, ``synchronous =
FULL``), 16 run at a time (the most that the policy allows), evidence is checked. Mutable work holds its
scope's lease as well.

Beside it in the same rounds: bare anyio tasks; the same with what nobody could leave out, a row and its end
on the disk and with spans the SDK's own cost (``bench/dispatch_floor.py``: the floor); that again with actors
(``bench/dispatch_actors.py``: the floor of what is one); LangGraph's ``Send``,
a map step; a run of the OpenAI Agents SDK and one of Pydantic AI with a model that does nothing; LiteLLM's
router with its mock response; and the original (``coding-os``), its own tools with its own files and a
dispatcher that does nothing. None of them but the original writes anything to a disk.

Not measured: a real runtime, which takes seconds; the start of a host (the tree stands, and one dispatch has
gone through it, before the clock starts); a file that several processes write to at once. What a commit costs
is the disk's, and is in the clock's figures; the processor's are without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours, peer
from bench.suite.measure import LOOPS, Base, Bench, Measure, Plot, Target

SEND = "LangGraph Send"
ORIGINAL = "the original"
PEERS = {
    "langgraph": SEND,
    "openai-agents": "OpenAI Agents SDK",
    "pydantic-ai-slim": "Pydantic AI",
    "litellm": "LiteLLM router",
    "coding-os": ORIGINAL,
}
FLOORS = {"tasks with rows": "dispatch_floor", "actors with rows": "dispatch_actors"}
OURS = tuple(f"custodes, {loop}" for loop in LOOPS)
TRACED = tuple(f"{name}, spans" for name in OURS)
UNTRACED = (
    *(f"{name}, {loop}" for name in ("bare tasks", *FLOORS, "custodes") for loop in LOOPS),
    *PEERS.values(),
)
ONE_TIMES = 1


def measures(quick: bool) -> Iterator[Measure]:
    original = Base(ORIGINAL)
    yield Measure(
        "one",
        ONE_TIMES,
        "one dispatch",
        base=original,
        targets=tuple(Target(name, 1 / 80, floor=floor_of(name)) for name in OURS),
    )
    yield Measure("one mutable", ONE_TIMES, "one dispatch of mutable work", base=original)
    sizes = (16, 64, 1_000) if quick else (16, 64, 1_000, 10_000)
    for size in sizes:
        off = [Target(name, 1, floor=floor_of(name)) for name in OURS]
        on = [Target(name, 1.5, floor=floor_of(name)) for name in TRACED]
        yield Measure(
            "fan-out",
            size,
            f"a child in a fan-out of {size:,}",
            among=UNTRACED if size == 10_000 else (),
            base=Base(SEND),
            targets=(*off, *on) if size == 1_000 else (),
            bounded=True,
        )
    stall = tuple(Target(name, 0.005, absolute=True) for name in OURS)
    yield Measure("stall", 64, "longest stall of the loop, 64 children", targets=stall)
    largest = sizes[-1]
    yield Measure("stall", largest, f"longest stall of the loop, {largest:,} children", rounds=1)
    small = tuple(Target(name, 30_000, absolute=True) for name in (*OURS, *TRACED))
    alive = min(largest, 1_000)
    what = f"memory of a live child, {alive:,} alive"
    yield Measure("alive", alive, what, key="bytes", rounds=1, targets=small)
    what = f"memory of a child asked for, {largest:,} of them"
    yield Measure("queued", largest, what, key="bytes", rounds=1, targets=small)


def floor_of(name: str) -> str:
    return name.replace("custodes", "actors with rows")


def contenders(_: ExitStack, peers_in: Path | None) -> Iterator[Contender]:
    for loop in LOOPS:
        yield ours(f"bare tasks, {loop}", "dispatch_subject", "tasks", loop)
        for name, module in FLOORS.items():
            yield ours(f"{name}, {loop}", module, loop)
            yield ours(f"{name}, {loop}, spans", module, loop, "--spans")
        yield ours(f"custodes, {loop}", "dispatch_subject", "custodes", loop)
        yield ours(f"custodes, {loop}, spans", "dispatch_subject", "custodes", loop, "--spans")
    for package, name in PEERS.items():
        yield from peer(name, package, "dispatch_peers", peers_in)


BENCH = Bench(
    "dispatch",
    "The floor is a bare task with its row on the disk before and after it, and with the SDK's spans. The "
    "original writes to a disk as we do, the other peers write nothing.",
    measures,
    contenders,
    plots=(
        Plot("bars", "fan-out", "A child in a fan-out of 1,000: the processor's time", 1_000),
        Plot("bars", "one", "One dispatch: the processor's time", ONE_TIMES),
    ),
)
