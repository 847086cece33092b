"""What a dispatch costs through everything, beside what others take for a child that does nothing.

    python bench/dispatch.py [--quick] [--rounds 5] [--peers-in FOLDER] [--no-peers] [--json FILE]

Measured, for a runtime that returns at once (``bench/noop``): one dispatch after another; fan-outs of 16, 64,
1,000 and 10,000 children; the longest time for which the host's loop did not come round during one; the
resident memory that each of 10,000 live children adds. Each on asyncio and on trio, with spans (the SDK, its
batch processor, an exporter that drops them) and without. All of it is what a host gets: the settings and the
adapters are looked at for each child, a dispatch is admitted and settled in the project's file with a commit
to the disk (WAL, ``synchronous = FULL``), 16 run at a time (the most that the policy allows), evidence is
checked. Mutable work holds its scope's lease as well.

Beside it in the same rounds: bare anyio tasks (the floor); LangGraph's ``Send``, a map step; a run of the
OpenAI Agents SDK and one of Pydantic AI with a model that does nothing; LiteLLM's router with its mock
response; and the original (``coding-os``), its own tools with its own files and a dispatcher that does
nothing. Each of the peers is installed, at the versions in ``bench/peers``, into an environment of its own
and runs in a process of its own; one that cannot be installed or run is named with its error. None of them
but the original writes anything to a disk.

Not measured: a real runtime, which takes seconds; the start of a host (the tree stands, and one dispatch has
gone through it, before the clock starts); a file that several processes write to at once
(``bench/health.py``). What a commit costs is the disk's, and is in the figures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.contest import HERE, Contender, Measure, hold, options
from bench.environment import CannotInstallError, environment

SEND = "LangGraph Send"
ORIGINAL = "the original"
PEERS = {
    "langgraph": SEND,
    "openai-agents": "OpenAI Agents SDK",
    "pydantic-ai-slim": "Pydantic AI",
    "litellm": "LiteLLM router",
    "coding-os": ORIGINAL,
}
ONE_TIMES = 30


def measures(quick: bool, rounds: int) -> Iterator[Measure]:
    yield Measure("one", ONE_TIMES, "one dispatch", rounds, base=ORIGINAL)
    yield Measure("one mutable", ONE_TIMES, "one dispatch of mutable work", rounds)
    for size in (16, 64, 1_000):
        yield Measure("fan-out", size, f"a child in a fan-out of {size:,}", rounds, base=SEND)
    largest = 1_000 if quick else 10_000
    if not quick:
        yield Measure("fan-out", largest, f"a child in a fan-out of {largest:,}", 1, base=SEND)
    for size in (64, largest):
        yield Measure(
            "stall", size, f"longest stall, {size:,} children", rounds if size == 64 else 1, unit=("ms", 1e-3)
        )
    yield Measure("memory", largest, f"memory of a live child, {largest:,} alive", 1, "bytes", ("KB", 1e3))


def contenders(peers_in: Path | None) -> Iterator[Contender]:
    subject = [sys.executable, "-m", "bench.dispatch_subject"]
    for backend in ("asyncio", "trio"):
        yield Contender(f"bare tasks, {backend}", [*subject, "tasks", backend])
        yield Contender(f"custodes, {backend}", [*subject, "custodes", backend])
        yield Contender(f"custodes, {backend}, spans", [*subject, "custodes", backend, "--spans"])
    if peers_in is None:
        return
    for package, name in PEERS.items():
        print(f"installing {package} …", file=sys.stderr, flush=True)
        try:
            python = environment(peers_in / package, "-r", str(HERE / "peers" / f"{package}.txt"))
        except CannotInstallError as error:
            yield Contender(name, [], cannot=f"cannot be installed: {error}")
        else:
            yield Contender(name, [str(python), "-m", "bench.dispatch_peers", package])


if __name__ == "__main__":
    hold(options("What a dispatch costs, as ratios.").parse_args(), measures, contenders)
