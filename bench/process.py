"""What a keeper costs: its start over a bare process start, its memory, and the proof of hard trees.

    python bench/process.py [--trees 100]

Ratios are to floors measured in the same run: a bare start of the same program, a bare isolated Python.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from custodes.adapters.process import ProcessResult, base_environment, run_program

HARD_TREE = """
trap '' TERM
setsid sh -c '(setsid sleep 300 &); sleep 300' &
(setsid sh -c 'sleep 300 & sleep 300' &)
sleep 300 &
echo up
sleep 300
"""
GRACE_S = 1.0


def median_ms(action: Callable[[], object], rounds: int = 30) -> float:
    action()
    spans = []
    for _ in range(rounds):
        begun = time.perf_counter()
        action()
        spans.append(time.perf_counter() - begun)
    return statistics.median(spans) * 1000


async def start_cost() -> None:
    environment = base_environment({})
    spans = []
    for _ in range(31):
        begun = time.perf_counter()
        await run_program(["true"], cwd="/", environment=environment, timeout_s=60)
        spans.append((time.perf_counter() - begun) * 1000)
    kept = statistics.median(spans[1:])
    bare = median_ms(lambda: subprocess.run(["true"], check=True))
    python = median_ms(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True))
    print(
        f"'true', start to proof   {kept:6.1f} ms   bare {bare:.1f} ms   bare Python {python:.1f} ms   "
        f"{kept / python:.1f} x a bare Python"
    )


async def memory() -> None:
    """Proportional share (PSS) and private memory of a keeper whose program runs."""
    sizes = []

    def look(line: bytes) -> bool:
        rollup = Path(f"/proc/{int(line)}/smaps_rollup").read_text()
        sizes.append({name: int(size) / 1024 for name, size in re.findall(r"(\w+): +(\d+) kB", rollup)})
        return True

    await run_program(
        ["sh", "-c", "echo $PPID; sleep 300"],
        cwd="/",
        environment=base_environment({}),
        timeout_s=60,
        on_line=look,
    )
    size = sizes[0]
    print(f"memory of a keeper       {size['Pss']:6.1f} MB PSS   {size['Private_Dirty']:.1f} MB of its own")


async def hard_trees(count: int) -> None:
    """From the end of the grace to the last proof; all are told to end together."""
    results: list[ProcessResult] = []
    running = 0
    all_up = anyio.Event()
    ends: list[float] = []

    def up(_: bytes) -> None:
        nonlocal running
        running += 1
        if running == count:
            all_up.set()

    async def one() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            results.append(
                await run_program(
                    ["sh", "-c", HARD_TREE],
                    cwd="/",
                    environment=base_environment({}),
                    timeout_s=600,
                    grace_s=GRACE_S,
                    on_line=up,
                )
            )
        ends.append(time.perf_counter())

    scopes: list[anyio.CancelScope] = []
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(one)
        await all_up.wait()
        begun = time.perf_counter()
        for scope in scopes:
            scope.cancel()
    assert not results, "a tree ended by itself"
    after = sorted(end - begun - GRACE_S for end in ends)
    print(
        f"{count} hard trees after the grace: median {after[len(after) // 2]:.2f} s, last {after[-1]:.2f} s "
        f"on {os.cpu_count()} cores"
    )


async def main(trees: int) -> None:
    await start_cost()
    await memory()
    await hard_trees(trees)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trees", type=int, default=100)
    anyio.run(main, options.parse_args().trees)
