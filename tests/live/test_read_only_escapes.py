"""Read-only work whose model tries every way out that its runtime knows: nothing is written.

The provider here is one that calls, turn after turn, the tool that a script names, declared or not. The
first way out of Gemini CLI is real: without a person, its plan mode lets the model leave it, into the mode
that approves everything.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from live.harness import Drive, Target, targets
from support.loopback.provider import Provider

pytestmark = [pytest.mark.live, pytest.mark.anyio]

TARGETS = targets()
Call = tuple[str, dict[str, object]]


def shell(name: str, **more: object) -> Call:
    return name, {"command": "echo hi > wrote.txt", **more}


WRITES: dict[str, object] = {
    "file_path": "wrote.txt",
    "filePath": "wrote.txt",
    "path": "wrote.txt",
    "content": "hi",
}
WAYS_OUT: dict[str, Sequence[Call]] = {
    "gemini": [
        ("exit_plan_mode", {"plan_filename": "p.md"}),
        shell("run_shell_command"),
        ("write_file", WRITES),
    ],
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
    target = TARGETS[adapter]
    if target.program is None:
        pytest.skip(f"{target.binary} is not installed: scripts/runtimes install {adapter}")
    calls = WAYS_OUT[adapter]
    assert await tried(target, calls, tmp_path, mutable=False) == len(calls)
    assert not (tmp_path / "work" / "wrote.txt").exists()


@pytest.mark.parametrize("adapter", sorted(WAYS_OUT))
async def test_the_same_calls_write_where_the_work_may(adapter: str, tmp_path: Path) -> None:
    target = TARGETS[adapter]
    if target.program is None:
        pytest.skip(f"{target.binary} is not installed: scripts/runtimes install {adapter}")
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
            gemini = "enerateContent" in self.path
            if not (gemini or self.path.endswith("/chat/completions")):
                self._send(b"{}", "application/json")
                return
            with lock:
                turn = json.dumps(body).count('"functionResponse"' if gemini else '"role": "tool"')
                if turn > len(taken):
                    taken.append(calls[turn - 1][0] if turn <= len(calls) else "")
            call = calls[turn] if turn < len(calls) else None
            answer = gemini_answer(call) if gemini else chat_answer(call, turn)
            self._send(b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in answer))

        def _send(self, data: bytes, kind: str = "text/event-stream") -> None:
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


def gemini_answer(call: Call | None) -> list[dict[str, Any]]:
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": "Done."}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}}]


def chat_answer(call: Call | None, turn: int) -> list[dict[str, Any]]:
    delta: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        made = {"index": 0, "id": f"call_{turn}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [made]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}],
            "usage": usage,
        },
    ]
