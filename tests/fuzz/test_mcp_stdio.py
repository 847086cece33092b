"""The MCP server over its own pipes: lines cut and spoiled, giants, clients that go in the middle."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fuzz import bent_lines, cut, spoiled, tried
from support.mcp_server import command
from support.program import running

HELLO = {
    "protocolVersion": types.LATEST_PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}
BEGIN: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)
CALLS: tuple[dict[str, Any], ...] = (
    {"method": "tools/call", "params": {"name": "cos_trace", "arguments": {"conversation": "c"}}},
    {"method": "tools/call", "params": {"name": "cos_role_info", "arguments": {"role": "reviewer"}}},
    {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "x"}},
    {"method": "ping"},
)


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


SEED = b"".join(line({"jsonrpc": "2.0", "id": n, **each}) for n, each in enumerate(CALLS))


class Server:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.asked = 0

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.stdin.write(piece)
            self.stdin.flush()

    def answers(self) -> dict[str, Any]:
        """What comes of a request that is well: the answers to others before it are passed over."""
        self.asked += 1
        name = f"well {self.asked}"
        self.say(line({"jsonrpc": "2.0", "id": name, "method": "tools/list"}))
        for said in self.stdout:
            answer: dict[str, Any] = json.loads(said)
            assert answer["jsonrpc"] == "2.0"
            if answer.get("id") == name:
                return answer
        raise AssertionError("it ended")


@contextmanager
def served(project: Path, loop: str = "asyncio") -> Iterator[Server]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command(project, loop), **pipes) as process:
        server = Server(process)
        server.say(*map(line, BEGIN))
        assert "result" in server.answers()
        yield server


def ended(server: Server) -> str:
    """Its stderr, once it has ended by itself; it left nothing behind."""
    assert server.process.wait(60) == 0
    assert server.process.stderr is not None
    said: str = server.process.stderr.read().decode()
    assert "Traceback" not in said
    return said


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("stdio")) as found:
        yield found
        found.stdin.close()
        found.stdout.read()
        ended(found)


ODD = [
    b"\0",
    b"\xff",
    b"\r\n",
    b"\n\n",
    b'"' * 300,
    b"[" * 2_000,
    b"{" * 2_000,
    b"\\ud800",
    b"1e999",
    b"\x1b[31m",
]
ODD += [b"x" * 200_000, b'{"jsonrpc": "2.0", "id": null}\n', b"Content-Length: 5\r\n\r\n", b"\xef\xbb\xbf"]


@given(said=spoiled([SEED], ODD) | bent_lines([SEED]), places=st.lists(st.integers(0, 1 << 12), max_size=6))
@tried(60)
def test_whatever_is_said_to_it_the_next_request_is_answered(
    server: Server, said: bytes, places: list[int]
) -> None:
    server.say(*cut(said, places), b"\n")
    assert "result" in server.answers()


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_message_of_many_megabytes_is_answered_and_one_without_end_ends_the_connection(
    tmp_path: Path, loop: str
) -> None:
    with served(tmp_path, loop) as server:
        words = {"name": "cos_role_info", "arguments": {"role": "x" * (8 << 20)}}
        large = {"jsonrpc": "2.0", "id": "large", "method": "tools/call", "params": words}
        data = line(large)
        server.say(*(data[at : at + 4_000] for at in range(0, len(data), 4_000)))
        assert "result" in server.answers()
        with suppress(BrokenPipeError):
            while True:
                server.say(b"x" * (1 << 20))
        server.stdout.read()
        assert "a message is over" in ended(server)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("way", ["writes no more", "reads no more", "its terminal closes"])
def test_a_client_that_goes_in_the_middle_of_a_message_ends_it(tmp_path: Path, loop: str, way: str) -> None:
    with served(tmp_path, loop) as server:
        server.say(SEED, SEED[:20])
        match way:
            case "writes no more":
                server.stdin.close()
                server.stdout.read()
            case "reads no more":
                server.stdout.close()
                with suppress(BrokenPipeError):
                    server.say(SEED * 500)
                    server.stdin.close()
            case _:
                server.process.send_signal(signal.SIGHUP)
                server.stdout.read()
        ended(server)
