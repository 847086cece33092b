"""The Hub as contenders of ``bench/hub.py``: its pages, its stream, and the work that it shows.

python -m bench.hub_subject {hub|nothing|alone|followed}
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import httpx2
import msgspec
import psutil

from bench.dispatch_subject import fan_out, install
from bench.suite.contender import ENOUGH_CPU_S, Case, Figures, serve
from custodes.store import Database
from custodes.supervision.record import records
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BIG = "big"
LAST = "the last change"
STREAM_S = 4.0
READERS = 16
READS = """
import httpx2, sys
with httpx2.stream("GET", sys.argv[1], timeout=60) as response:
    for number, line in enumerate(response.iter_lines()):
        if number == 0:
            print("follows", flush=True)
"""
"""A page that follows, in a process of its own."""


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


class Hubs:
    """Hubs that stay until the end, one for each number of children on its project's record."""

    def __init__(self, running: ExitStack) -> None:
        self._running = running
        self._started: dict[int, tuple[str, int]] = {}

    def page(self, path: str, children: int) -> Figures:
        """For one whole answer: ``seconds`` as a reader waits who is alone, ``cpu`` of the Hub's process with
        some at once. On a machine with other work, a Hub that has to wait for each ask wakes for each to cold
        caches, and that would be most of a short answer's time.
        """
        if children not in self._started:
            here = self._running.enter_context(project(rows(children)))
            self._started[children] = self._running.enter_context(hub(here))
        address, pid = self._started[children]
        paths = [path] * READERS
        with httpx2.Client(base_url=address, timeout=60) as client, ThreadPoolExecutor(READERS) as readers:
            client.get(path)
            begun = time.perf_counter()
            for each in paths:
                assert client.get(each).status_code == 200
            took = time.perf_counter() - begun
            times, before = 0, processor_of(pid)
            while processor_of(pid) - before < ENOUGH_CPU_S:
                assert all(answer.status_code == 200 for answer in readers.map(client.get, paths))
                times += READERS
            used = processor_of(pid) - before
        return {"seconds": took / READERS, "cpu": used / times}


def processor_of(pid: int) -> float:
    """The processor's seconds of another process, every thread of it."""
    return time.clock_gettime((~pid << 3) | 2)  # its CPU clock's number, by clock_getcpuclockid(3)


@contextmanager
def chromium() -> Iterator[Browser]:
    """:raises RuntimeError: there is none."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        raise RuntimeError("there is no chromium (scripts/browser installs one)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def paint(path: str, children: int) -> Figures:
    """The first contentful paint in a real browser; the second of two, as of a person who looks again.

    :raises RuntimeError: there is no browser.
    """
    script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    with project(rows(children)) as here, hub(here) as (address, _), chromium() as browser:
        for _again in range(2):
            shown = browser.new_context().new_page()
            shown.goto(address + path)
            while (painted := shown.evaluate(script)) is None:
                shown.wait_for_timeout(10)
            shown.context.close()
    return {"paint_s": painted / 1e3}


def browsed(children: int) -> Figures:
    """How many row changes a second a real browser follows, and how far behind its page is at their end.

    :raises RuntimeError: there is no browser.
    """
    known = rows(children)
    with project(known) as here, hub(here) as (address, _), chromium() as browser:
        shown = browser.new_page()
        shown.goto(f"{address}/conversations/{BIG}")
        shown.wait_for_function("() => document.getElementById('link').textContent === 'Live'")
        with ThreadPoolExecutor(1) as writer:  # in this thread runs the browser's loop
            changes = writer.submit(anyio.run, write_changes, here, known).result()
        written = time.perf_counter()
        shown.wait_for_function(f"() => document.body.textContent.includes({LAST!r})", timeout=60_000)
        return {"changes": changes / STREAM_S, "lag_s": time.perf_counter() - written}


def stream(children: int) -> Figures:
    """How many row changes a second a page follows, and what of the Hub it takes."""
    known = rows(children)
    with project(known) as here, hub(here) as (address, pid):
        follower = Follower(f"{address}/live/conversation?id={BIG}")
        try:
            while not follower.parts:
                time.sleep(0.01)
            told = follower.parts
            changes = anyio.run(write_changes, here, known)
            written = time.perf_counter()
            assert follower.ended.wait(60), "the last change was never told"
            return {
                "changes": changes / STREAM_S,
                "parts": (follower.parts - told) / STREAM_S,
                "lag_s": time.perf_counter() - written,
                "bytes": psutil.Process(pid).memory_info().rss,
            }
        finally:
            follower.stop()


async def write_changes(project: Path, known: list[AttemptRow]) -> int:
    """Change ten rows a commit for as long as the stream is measured; how many changes that were."""
    database = await Database.open(project / DATABASE, MIGRATIONS)
    commits = 0
    try:
        ends = time.perf_counter() + STREAM_S
        while time.perf_counter() < ends:
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
    return commits * 10 + 1


async def insert(project: Path, known: list[AttemptRow]) -> None:
    database = await Database.open(project / DATABASE, MIGRATIONS)
    try:
        await database.write(partial(records.insert, rows=known))
    finally:
        await database.aclose()


@contextmanager
def project(known: list[AttemptRow]) -> Iterator[Path]:
    """One with these on record."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = str(Path(folder) / "config")
        here = install(Path(folder))
        anyio.run(insert, here, known)
        yield here


def work(size: int, *, followed: bool) -> Figures:
    """A fan-out in this process, with a Hub on its project that a page follows or without one."""
    with project([]) as here:
        if not followed:
            return anyio.run(fan_out, here, size)
        with hub(here) as (address, _):
            reads = [sys.executable, "-c", READS, f"{address}/live/conversation?id=bench"]
            with subprocess.Popen(reads, stdout=subprocess.PIPE) as page:  # its time is not the host's
                assert page.stdout is not None
                page.stdout.readline()
                try:
                    return anyio.run(fan_out, here, size)
                finally:
                    page.terminate()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["hub", "nothing", "alone", "followed"])
    subject = parser.parse_args().subject
    pages = {"settings": "/settings", "tree": f"/conversations/{BIG}"}
    with ExitStack() as running:
        hubs = Hubs(running)
        cases: dict[str, dict[str, Case]] = {
            "nothing": {name: partial(hubs.page, "/static/mark.svg") for name in pages},
            "hub": {
                **{name: partial(hubs.page, path) for name, path in pages.items()},
                **{f"paint {name}": partial(paint, path) for name, path in pages.items()},
                "stream": stream,
                "browser": browsed,
            },
            "alone": {"work": partial(work, followed=False)},
            "followed": {"work": partial(work, followed=True)},
        }
        serve(version("custodes"), cases[subject])


if __name__ == "__main__":
    main()
