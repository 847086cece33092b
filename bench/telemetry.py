"""What telemetry costs a child: with no SDK, and with a collector that takes, that is silent, that is down.

Measured, for a runtime that returns at once (``bench/noop``), on asyncio and on trio: a child in a fan-out,
with all that a host gets (``bench/dispatch.py`` says what); and how long it takes to leave
`custodes.telemetry.exporting` after such a fan-out, which is what a program's exit waits for. The collectors
run in a process of the suite's own, on loopback; the one that takes drops what it gets.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import LOOPS, Base, Bench, Measure, Target

SIZE = 200
ROUNDS = 7
"""An ask that waits for the bound does so for two seconds."""
LEAVING_S = 2.1
"""The bound of 2 s, and what a bounded wait may wake late by."""
STATES = ("no SDK", "a collector that takes", "a collector that is silent", "a collector that is down")


def measures(_: bool) -> Iterator[Measure]:
    for loop in LOOPS:
        among = tuple(f"{loop}, {state}" for state in STATES)
        yield Measure(
            "fan-out",
            SIZE,
            f"a child in a fan-out of {SIZE}, {loop}",
            rounds=ROUNDS,
            among=among,
            base=Base(among[0]),
        )
        yield Measure(
            "fan-out",
            SIZE,
            f"leaving the export, {loop}",
            key="leaving_s",
            rounds=ROUNDS,
            among=among[1:],
            targets=tuple(Target(name, LEAVING_S, absolute=True) for name in among[1:]),
        )


def contenders(running: ExitStack, _: Path | None) -> Iterator[Contender]:
    places = {
        STATES[0]: "",
        STATES[1]: running.enter_context(collector(silent=False)),
        STATES[2]: running.enter_context(collector(silent=True)),
        STATES[3]: nobody(),
    }
    for loop in LOOPS:
        for state, place in places.items():
            yield ours(f"{loop}, {state}", "telemetry_subject", loop, place)


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


BENCH = Bench(
    "telemetry", "Each is held against the child of the same loop with no SDK.", measures, contenders
)
