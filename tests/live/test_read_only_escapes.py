"""Read-only work whose model tries every way out that its runtime knows: nothing is written.

The provider here is one that calls, turn after turn, the tool that a script names, declared or not. The
first way out of Gemini CLI is real: without a person, its plan mode lets the model leave it, into the mode
that approves everything.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from live.harness import Drive, Target, targets
from live.installed import installed
from support.loopback.http import WIRES
from support.loopback.protocol import Call, Wire
from support.loopback.provider import Provider

pytestmark = [pytest.mark.live, pytest.mark.anyio]

TARGETS = targets()
RESULTS = {
    "anthropic": re.compile(r'"type": "tool_result"'),
    "responses": re.compile(r'"type": "(?:function|custom_tool)_call_output"'),
    "chat": re.compile(r'"role": "tool"'),
    "gemini": re.compile(r'"functionResponse"'),
}
"""What the result of a call looks like in the next request."""


def shell(name: str, **more: Any) -> Call:
    return name, {"command": "echo hi > wrote.txt", **more}


WRITES: dict[str, Any] = {
    "file_path": "wrote.txt",
    "filePath": "wrote.txt",
    "path": "wrote.txt",
    "content": "hi",
}
GEMINI: Sequence[Call] = [
    ("exit_plan_mode", {"plan_filename": "p.md"}),
    shell("run_shell_command"),
    ("write_file", WRITES),
]
CLAUDE: Sequence[Call] = [
    ("ExitPlanMode", {"plan": "- write"}),
    shell("Bash"),
    ("Task", {"description": "x", "prompt": "write", "subagent_type": "general-purpose"}),
    ("Write", WRITES),
]
WAYS_OUT: dict[str, Sequence[Call]] = {
    "claude": CLAUDE,
    "acp-claude": CLAUDE,
    "acp-codex": [shell("exec")],
    "acp-gemini": GEMINI,
    "gemini": GEMINI,
    "qwen": [
        ("exit_plan_mode", {"plan": "- write"}),
        shell("run_shell_command", is_background=False),
        ("tool_call", {"name": "run_shell_command", "arguments": {"command": "echo hi > wrote.txt"}}),
        ("write_file", WRITES),
    ],
    "opencode": [
        shell("bash", description="write"),
        ("write", WRITES),
        ("task", {"description": "x", "prompt": "write", "subagent_type": "general"}),
    ],
    "hermes": [
        shell("terminal"),
        ("write_file", WRITES),
        ("patch", {"mode": "patch", "patch": "*** Begin Patch\n*** Add File: wrote.txt\n+hi\n*** End Patch"}),
        ("execute_code", {"code": "open('wrote.txt', 'w').write('hi')"}),
    ],
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("adapter", sorted(WAYS_OUT))
async def test_no_way_out_of_read_only_work_is_open(adapter: str, tmp_path: Path) -> None:
    target = installed(TARGETS[adapter])
    calls = WAYS_OUT[adapter]
    assert await tried(target, calls, tmp_path, mutable=False) == len(calls)
    assert not (tmp_path / "work" / "wrote.txt").exists()


@pytest.mark.parametrize("adapter", sorted(WAYS_OUT))
async def test_the_same_calls_write_where_the_work_may(adapter: str, tmp_path: Path) -> None:
    target = installed(TARGETS[adapter])
    await tried(target, WAYS_OUT[adapter], tmp_path, mutable=True)
    assert (tmp_path / "work" / "wrote.txt").exists()


async def tried(target: Target, calls: Sequence[Call], folder: Path, *, mutable: bool) -> int:
    """How many of the calls the runtime answered."""
    making = Drive(target, "success", folder, mutable=mutable)
    with caller(calls) as (provider, taken):
        await making.dispatch(provider)
        return len(taken)


@contextmanager
def caller(calls: Sequence[Call]) -> Iterator[tuple[Provider, list[str]]]:
    """A provider that makes these calls, each once; the names of those whose result came back."""
    taken: list[str] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(b"{}", "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            wire = next((each for each in WIRES if each.speaks(path)), None)
            if wire is None:
                self._send(b"{}", "application/json")
                return
            call = self._next(wire, body) if wire.tools(body) else None
            model = wire.model(path, body)
            if wire.streams(path, body):
                # Each call has an id of its own.
                own = b"loopback%02d" % (len(taken) + 1)
                said = b"".join(wire.events(model, "Done.", call))
                self._send(said.replace(b"loopback01", own), "text/event-stream")
            else:
                self._send(json.dumps(wire.whole(model, "Done.", call)).encode(), "application/json")

        def _next(self, wire: Wire, body: dict[str, Any]) -> Call | None:
            with lock:
                turn = len(RESULTS[wire.name].findall(json.dumps(body)))
                if turn > len(taken):
                    taken.append(calls[turn - 1][0] if turn <= len(calls) else "")
                return calls[turn] if turn < len(calls) else None

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *said: object) -> None:
            """Nothing: its journal is the list."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Provider(["success"], "", url=f"http://127.0.0.1:{server.server_port}"), taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
