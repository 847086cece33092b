"""What telemetry costs a child: with no SDK, and with a collector that takes, that is silent, that is down.

    python bench/telemetry.py [--rounds 7] [--size 200]

Measured, for a runtime that returns at once (``bench/noop``), on asyncio and on trio: a child in a fan-out,
with all that a host gets (``bench/dispatch.py`` says what), and the processor's time for it; and how long it
takes to leave `custodes.telemetry.exporting` after such a fan-out, which is what a program's exit waits for.

Every round asks every contender in turn, each in a process of its own; the figure is the median of the
rounds, and the ratio is to the child with no SDK in the same round. The collector that takes runs in the
bench's own process, on loopback, and drops what it gets.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])  # run as a file
from bench.contender import serve
from bench.contest import Contender, Measure, table
from bench.dispatch_subject import fan_out, install

from custodes.telemetry import exporting


def measured(project: Path, backend: str, endpoint: str, size: int) -> dict[str, Any]:
    """A fan-out with its export; ``busy`` is the processor's time for each child, of every thread; ``left``
    how long leaving the export took."""
    with ExitStack() as stack:
        if endpoint:
            stack.enter_context(exporting(endpoint, {}))
        busy = time.process_time()
        found: dict[str, Any] = anyio.run(fan_out, project, size, backend=backend)
        found["busy"] = (time.process_time() - busy) / size
        begun = time.perf_counter()
        stack.close()
        found["left"] = time.perf_counter() - begun
    return found


def contend(backend: str, endpoint: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = install(Path(folder))
        cases = {name: partial(measured, project, backend, endpoint) for name in ("fan-out", "left")}
        serve(version("opentelemetry-sdk") if endpoint else "", cases)


@contextmanager
def collector(*, silent: bool) -> Iterator[str]:
    """The address of one that drops what it gets, or reads it and never answers."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            if silent:
                over.wait()
                return
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def nobody() -> str:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--contend", nargs=2, metavar=("BACKEND", "ENDPOINT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contend:
        contend(*options.contend)
        return
    child = Measure("fan-out", options.size, f"a child in a fan-out of {options.size}", options.rounds)
    busy = Measure("fan-out", options.size, "the processor's time for it", options.rounds, "busy")
    left = Measure("left", options.size, "leaving the export", options.rounds, "left", ("ms", 1e-3))
    with ExitStack() as stack:
        places = {
            "no SDK": "",
            "a collector that takes": stack.enter_context(collector(silent=False)),
            "a collector that is silent": stack.enter_context(collector(silent=True)),
            "a collector that is down": nobody(),
        }
        for backend in ("asyncio", "trio"):
            with ExitStack() as running:
                found = [
                    running.enter_context(
                        Contender(
                            f"{backend}, {name}",
                            [sys.executable, "-m", "bench.telemetry", "--contend", backend, place],
                        )
                    )
                    for name, place in places.items()
                ]
                for what in (child, left):
                    for _ in range(options.rounds):
                        for each in found:
                            each.measure(what)
                for what in (child, busy, left):
                    for line in table(replace(what, base=found[0].name), found):
                        print(line, flush=True)


if __name__ == "__main__":
    main()
