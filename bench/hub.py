"""What the Hub costs: pages, streams, memory, and the work that it shows.

    python -m bench.hub [--rounds 5] [--children 1000] [--seconds 4]

Times of pages are those of a whole answer over HTTP from a Hub in a process of its own, beside the floor: an
answer of the same server in which nothing is rendered. With chromium and playwright installed, the first
contentful paint of a real browser stands beside them. The work is a fan-out whose runtime answers at once,
with a Hub that a page follows and without one, in turns: the ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter

import anyio
import httpx2
import msgspec
import psutil

from custodes import Supervision, Work
from custodes.adapters.trust import trust
from custodes.store import Database
from custodes.supervision.record import records
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

BIG = "big"
LAST = "the last change"
ADAPTER = """\
version: 1
runtime_entrypoints:
  dispatch: dispatch.py
  capabilities: [dispatch, model_selection, effort_selection, structured_output]
models: [{id: one, default: true}]
efforts: [low]
"""
DISPATCH = """\
from custodes.adapters.port import DispatchResult


class Runtime:
    async def dispatch(self, request, progress):
        return DispatchResult(text='{"summary": "done"}')


def runtime(descriptor):
    return Runtime()
"""


def make_project(folder: Path) -> Path:
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    project = folder / "project"
    adapter = project / ".coding-os" / "adapters" / "quick"
    adapter.mkdir(parents=True)
    (adapter / "adapter.yaml").write_text(ADAPTER)
    (adapter / "dispatch.py").write_text(DISPATCH)
    trust(adapter)
    (project / ".coding-os.yaml").write_text("agents: [quick, claude, codex, gemini]\n")
    settings = (
        '{"model_routing": {"enabled": true, "orchestrator": {"adapter": "quick"}, "max_parallel": 16}}'
    )
    (project / ".coding-os" / "hub-settings.json").write_text(settings)
    return project


def rows(children: int) -> list[AttemptRow]:
    begun = time.time() - 600
    return [
        AttemptRow(
            run_id=f"run{number}",
            number=1,
            conversation=BIG,
            role="analyst",
            name=f"shard {number}",
            adapter="claude",
            model="claude-haiku-4-5",
            effort="low",
            pool="claude:haiku-4-5",
            health_state="healthy",
            status="done",
            input_tokens=1_000,
            output_tokens=200,
            cost_usd=0.001,
            started=begun + number / 10,
            ended=begun + number / 10 + 30,
        )
        for number in range(children)
    ]


@contextmanager
def hub(project: Path) -> Iterator[tuple[str, int]]:
    """A Hub in a process of its own: its address and its pid."""
    command = [sys.executable, "-m", "custodes.cli", "hub", "--port", "0", "-d", str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1].rstrip("/"), process.pid
        finally:
            process.terminate()
            process.wait(30)


class Follower:
    """Reads a stream in a thread, as a browser does; ``parts`` counts what was told, ``ended`` its last."""

    def __init__(self, url: str) -> None:
        self.parts = 0
        self.ended = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._read, args=(url,))
        self._thread.start()

    def _read(self, url: str) -> None:
        with httpx2.Client(timeout=60) as client, client.stream("GET", url) as response:
            for line in response.iter_lines():
                self.parts += line.count("<hx-partial")
                if LAST in line:
                    self.ended.set()
                if self._stop:
                    return

    def stop(self) -> None:
        """At its next line; a sign of life comes within 15 s."""
        self._stop = True
        self._thread.join(30)


def timed(client: httpx2.Client, path: str, rounds: int) -> tuple[float, float, int]:
    """First and median milliseconds of a whole answer, and its bytes."""
    taken = []
    for _ in range(rounds + 1):
        begun = perf_counter()
        answer = client.get(path)
        taken.append(1000 * (perf_counter() - begun))
        assert answer.status_code == 200
    return taken[0], statistics.median(taken[1:]), len(answer.content)


def paints(address: str, paths: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Median milliseconds to the first contentful paint; nothing where there is no browser."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        return {}
    from playwright.sync_api import sync_playwright

    script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for path in paths:
            taken = []
            for _ in range(rounds):
                page = browser.new_context().new_page()
                page.goto(address + path)
                while (painted := page.evaluate(script)) is None:
                    page.wait_for_timeout(10)
                taken.append(painted)
                page.context.close()
            found[path] = statistics.median(taken)
        browser.close()
    return found


async def write_changes(project: Path, known: list[AttemptRow], seconds: float) -> tuple[int, int]:
    """Change ten rows a commit for so long; how many commits and row changes that were."""
    database = await Database.open(project / DATABASE, MIGRATIONS)
    commits = 0
    try:
        ends = perf_counter() + seconds
        while perf_counter() < ends:
            first = commits * 10 % len(known)
            changed = [
                msgspec.structs.replace(row, reason=f"change {commits}") for row in known[first : first + 10]
            ]
            await database.write(partial(records.update, rows=changed))
            commits += 1
        last = msgspec.structs.replace(known[0], reason=LAST, status="failed")
        await database.write(partial(records.update, rows=[last]))
    finally:
        await database.aclose()
    return commits + 1, commits * 10 + 1


async def insert(project: Path, known: list[AttemptRow]) -> None:
    database = await Database.open(project / DATABASE, MIGRATIONS)
    try:
        await database.write(partial(records.insert, rows=known))
    finally:
        await database.aclose()


async def fan_out(project: Path, name: str, children: int) -> float:
    begun = perf_counter()
    async with (
        Supervision(project) as supervision,
        supervision.conversation(name) as parent,
        parent.fan_out(max_parallel=16) as fan,
    ):
        for _ in range(children):
            fan.start(Work(role="analyst", prompt="work"))
    assert {outcome.status for outcome in fan.outcomes} == {"done"}
    return perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--children", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=4.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder))
        known = rows(asked.children)
        anyio.run(insert, project, known)
        pages_and_streams(project, known, asked.rounds, asked.seconds)
        supervised_work(project, asked.rounds)


def pages_and_streams(project: Path, known: list[AttemptRow], rounds: int, seconds: float) -> None:
    tree = f"/conversations/{BIG}"
    with hub(project) as (address, pid), httpx2.Client(base_url=address, timeout=60) as client:
        process = psutil.Process(pid)
        _, floor, _ = timed(client, "/static/mark.svg", 20)
        print(f"floor: an answer in which nothing is rendered: {floor:.1f} ms; memory {_mb(process)}")
        for path in ("/settings", tree):
            first, median, size = timed(client, path, rounds)
            words = f"first {first:.0f} ms, then {median:.1f} ms ({median / floor:.1f} floors)"
            print(f"{path}: {words}, {size / 1024:.0f} kB")
        for path, paint in paints(address, ("/settings", tree), rounds).items():
            print(f"{path}: first contentful paint {paint:.0f} ms in chromium")
        print(f"memory after these: {_mb(process)}")
        follower = Follower(f"{address}/live/conversation?id={BIG}")
        while not follower.parts:
            time.sleep(0.01)
        told = follower.parts
        commits, changes = anyio.run(write_changes, project, known, seconds)
        written = perf_counter()
        assert follower.ended.wait(60)
        lag = 1000 * (perf_counter() - written)
        print(
            f"stream: {changes / seconds:.0f} row changes a second in {commits / seconds:.0f} commits, told "
            f"as {(follower.parts - told) / seconds:.0f} parts a second; the last is there {lag:.0f} ms "
            "after its commit"
        )
        print(f"memory after the stream: {_mb(process)}")
        follower.stop()


def supervised_work(project: Path, rounds: int) -> None:
    anyio.run(fan_out, project, "warm", 50)
    ratios, alone = [], []
    for number in range(rounds):
        without = anyio.run(fan_out, project, f"without-{number}", 200)
        name = f"with-{number}"
        with hub(project) as (address, _):
            follower = Follower(f"{address}/live/conversation?id={name}")
            shown = anyio.run(fan_out, project, name, 200)
        follower.stop()
        alone.append(without)
        ratios.append(shown / without)
    print(
        f"200 children whose runtime answers at once: {1000 * statistics.median(alone):.0f} ms; with a Hub "
        f"that a page follows, {statistics.median(ratios):.2f} times that "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def _mb(process: psutil.Process) -> str:
    return f"{process.memory_info().rss / 2**20:.0f} MB"


if __name__ == "__main__":
    main()
