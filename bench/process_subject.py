"""The keeper as a contender of ``bench/process.py``, and the floors under it.

python -m bench.process_subject {keeper|python|program|hand}
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio
import psutil

from bench.suite.contender import Case, Figures, Spent, processor, repeated, serve
from custodes.adapters.process import ProcessResult, base_environment, run_program

HARD_TREE = """
trap '' TERM
setsid sh -c '(setsid sleep 300 &); sleep 300' &
(setsid sh -c 'sleep 300 & sleep 300' &)
sleep 300 &
echo up
sleep 300
"""
PROCESSES = 7
"""Of a hard tree, once it is up."""
GRACE_S = 1.0
PR_SET_CHILD_SUBREAPER = 36


async def kept(times: int) -> Figures:
    """For one start under a keeper, to the proof that it is gone."""
    environment = base_environment({})
    start = partial(run_program, ["true"], cwd="/", environment=environment, timeout_s=60)
    await start()
    spent = Spent()
    while not spent.enough:
        with spent.counting(times):
            for _ in range(times):
                await start()
    return spent.figures()


def bare(command: list[str], times: int) -> Figures:
    def some() -> None:
        for _ in range(times):
            subprocess.run(command, check=True)

    return repeated(some, times)


async def memory(_: int) -> Figures:
    """The proportional share (PSS) of a keeper whose program runs."""
    sizes: list[int] = []

    def look(line: bytes) -> bool:
        rollup = Path(f"/proc/{int(line)}/smaps_rollup").read_text()
        sizes.extend(int(size) * 1024 for size in re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE))
        return True

    await run_program(
        ["sh", "-c", "echo $PPID; sleep 300"],
        cwd="/",
        environment=base_environment({}),
        timeout_s=60,
        on_line=look,
    )
    return {"bytes": sizes[0]}


async def proof(trees: int) -> Figures:
    """All are told to end together. ``seconds`` from the grace's end to the last proof; ``cpu`` for each tree
    from its start on, of this process, the keepers and all that they have reaped."""
    results: list[ProcessResult] = []
    running = 0
    all_up = anyio.Event()
    ends: list[float] = []

    def up(_: bytes) -> None:
        nonlocal running
        running += 1
        if running == trees:
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
    before = processor()
    async with anyio.create_task_group() as group:
        for _ in range(trees):
            group.start_soon(one)
        await all_up.wait()
        begun = time.perf_counter()
        for scope in scopes:
            scope.cancel()
    assert not results, "a tree ended by itself"
    return {"seconds": max(ends) - begun - GRACE_S, "cpu": (processor() - before) / trees}


def by_hand(trees: int) -> Figures:
    """From the first kill until the kernel says that nothing is left, of all the trees together."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what loses its parent falls back to us
    me, before = psutil.Process(), processor()
    started = [
        subprocess.Popen(["sh", "-c", HARD_TREE], stdout=subprocess.PIPE, start_new_session=True)
        for _ in range(trees)
    ]
    for tree in started:
        assert tree.stdout is not None
        with tree.stdout:
            tree.stdout.readline()
    watching = time.process_time()
    while len(me.children(recursive=True)) < PROCESSES * trees:
        time.sleep(0.01)
    before += time.process_time() - watching  # how often it had to look is no part of it
    begun = time.perf_counter()
    left = True
    while left:
        for process in me.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        left = _reaped()
    seconds = time.perf_counter() - begun
    for tree in started:
        tree.returncode = -signal.SIGKILL  # reaped above, which Popen cannot know
    return {"seconds": seconds, "cpu": (processor() - before) / trees}


def _reaped() -> bool:
    """Wait for one to end, and reap what else has. Whether anything is left."""
    try:
        os.waitpid(-1, 0)
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["keeper", "python", "program", "hand"])
    subject = parser.parse_args().subject
    cases: dict[str, dict[str, Case]] = {
        "keeper": {
            "start": lambda times: anyio.run(kept, times),
            "memory": lambda times: anyio.run(memory, times),
            "proof": lambda trees: anyio.run(proof, trees),
        },
        "python": {"start": partial(bare, [sys.executable, "-I", "-S", "-c", "pass"])},
        "program": {"start": partial(bare, ["true"])},
        "hand": {"proof": by_hand},
    }
    serve(version("custodes") if subject == "keeper" else "", cases[subject])


if __name__ == "__main__":
    main()
