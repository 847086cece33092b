"""The MCP server with what no client means: arguments of any kind, and lines that are no messages."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import anyio.from_thread
import mcp_types as types
import msgspec
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st

from custodes import Supervision
from custodes.adapters.errors import AdapterError
from custodes.mcp.tools import TOOLS, Tool, Tools
from custodes.overseer.by_hand import SwitchRefused
from custodes.overseer.reading import ConfigError
from custodes.policy.arguments import ArgumentsError, schema_of
from custodes.policy.settings import SettingsError
from custodes.store import StoreError
from custodes.supervision.asks.operator_ask import OperatorError
from support import scripted
from support.fuzz import CANARY, WORDS, bent, tried
from support.mcp_server import command
from support.overseer import kept_in_a_file

SCHEMA = schemathesis.openapi.from_dict(
    {
        "openapi": "3.1.0",
        "info": {"title": "tools", "version": "1"},
        "paths": {
            f"/{tool.name}": {
                "post": {
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": schema_of(tool.call)}},
                    },
                    "responses": {"200": {"description": "done"}},
                }
            }
            for tool in TOOLS
        },
    }
)
REFUSALS = (ArgumentsError, SettingsError, AdapterError, OperatorError, ConfigError, SwitchRefused)
WORK: dict[str, Any] = {"role": "reviewer", "prompt": "x", "timeout": 5, "scope": ["src"], "name": "one"}
CALLS: dict[str, dict[str, Any]] = {
    "cos_supervision_config": {
        "action": "set",
        "max_parallel": 3,
        "cooldown": {"default_seconds": 5},
        "roles": {"reviewer": {"effort": "low"}},
        "presets": {"night": {"reviewer": {"model": "small"}}},
        "clear": ["roles.reviewer"],
    },
    "cos_role_info": {"role": "reviewer"},
    "cos_health": {"action": "clear", "target": "alpha:large"},
    "cos_dispatch": WORK,
    "cos_fan_out": {"children": [WORK, WORK], "name": "f", "budget": {"tokens": 10, "usd": 1.5}},
    "cos_asks": {"action": "answer", "ask": "a", "answer": "deny"},
    "cos_cancel": {"target": "r"},
    "cos_trace": {"conversation": "c"},
    "cos_overseer": {"action": "switch", "profile": "w", "target": "b/two", "force": True, "was": "a/one"},
}


class Asked:
    """The tools of a project whose runtime answers at once, asked from outside their loop."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal, tools: Tools) -> None:
        self._portal = portal
        self._tools = tools

    def ask(self, tool: Tool, arguments: Any) -> None:
        async def report(progress: float, message: str) -> None:
            pass

        async def call() -> bytes:
            with anyio.fail_after(60):
                return msgspec.json.encode(await self._tools.call(tool.name, arguments, report))

        try:
            answer = self._portal.call(call)
        except (*REFUSALS, StoreError) as error:
            assert str(error).encode().strip()  # noqa: PT017 - not every call is refused; a client reads UTF-8
            return
        assert isinstance(msgspec.json.decode(answer), dict)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("tools")
    with pytest.MonkeyPatch.context() as patch, anyio.from_thread.start_blocking_portal() as portal:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.setenv("HERMES_HOME", str(folder))
        kept_in_a_file(folder)
        project = folder / "project"
        project.mkdir()
        scripted.install(project, "alpha", "beta")
        supervision = Supervision(project)
        with (
            portal.wrap_async_context_manager(supervision),
            portal.wrap_async_context_manager(supervision.conversation("fuzzed")) as parent,
        ):
            yield Asked(portal, Tools(supervision, parent))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@given(data=st.data())
@tried(6)
def test_what_its_schema_allows_is_answered_or_refused_in_words(
    asked: Asked, tool: Tool, data: st.DataObject
) -> None:
    body = data.draw(SCHEMA[f"/{tool.name}"]["POST"].as_strategy()).body
    if isinstance(body, dict):  # one that waits for a pool waits as long as was asked
        body = {key: value for key, value in body.items() if key not in ("wait", "children")}
    asked.ask(tool, body)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@given(data=st.data())
@tried(25)
def test_what_its_schema_does_not_allow_is_refused_in_words(
    asked: Asked, tool: Tool, data: st.DataObject
) -> None:
    arguments = data.draw(bent(CALLS[tool.name]))
    asked.ask(tool, arguments if isinstance(arguments, dict) else {"x": arguments})


ODD: tuple[Any, ...] = (None, True, -1, 1e308, 2**70, "", "\ud800", [], {}, [[]], {"a": None}, CANARY)


def no_messages() -> Iterator[bytes]:
    """Lines that are none, or of which nobody could say what they answer."""
    yield from (word.replace("\n", " ").encode() for word in WORDS)
    yield from (
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 5_000,
        b"\0",
        b"[" * 900 + b"]" * 900,
        b'{"jsonrpc": "2.0"}',
    )
    for value in ODD:
        for key in ("jsonrpc", "id", "method"):
            yield json.dumps({"jsonrpc": "2.0", "method": "ping", key: value}).encode()
        for method in ("initialize", "notifications/cancelled", "notifications/progress", "x"):
            yield json.dumps({"jsonrpc": "2.0", "method": method, "params": value}).encode()


def requests() -> Iterator[dict[str, Any]]:
    """Requests of a client, each with something odd in one place."""
    objects = [value for value in ODD if isinstance(value, dict)]
    for method in ("tools/call", "tools/list", "initialize", "ping", "resources/list", "x", "$/x", ""):
        yield from ({"method": method, "params": value} for value in objects)
    for key in ("name", "arguments", "_meta"):
        for value in ODD:
            if value != "\ud800":  # no JSON of UTF-8: a line that is no message
                yield {"method": "tools/call", "params": {"name": "cos_trace", key: value}}


def poured(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(data)
    pipe.flush()  # Python 3.14 would keep so little to itself


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_lines_that_are_no_messages_end_in_errors_and_the_server_goes_on(tmp_path: Path, loop: str) -> None:
    hello = {
        "protocolVersion": types.LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "fuzz", "version": "1"},
    }
    begin = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    last = {"jsonrpc": "2.0", "id": "last", "method": "tools/list"}
    odd = [{"jsonrpc": "2.0", "id": 100 + number, **each} for number, each in enumerate(requests())]
    messages = [json.dumps(each).encode() for each in (*odd, last)]
    sent = [*(json.dumps(each).encode() for each in begin), *no_messages(), *messages]
    with subprocess.Popen(
        command(tmp_path, loop), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        writing = threading.Thread(target=poured, args=(server.stdin, b"\n".join(sent) + b"\n"))
        writing.start()
        left = {each["id"] for each in (*odd, last)}
        answers = {}
        for line in server.stdout:
            answer = json.loads(line)
            answers[answer["id"]] = answer
            left.discard(answer["id"])
            if not left:
                break
        writing.join()
        out, err = server.communicate(timeout=60)
    assert server.returncode == 0
    assert not left
    assert [tool["name"] for tool in answers["last"]["result"]["tools"]] == [tool.name for tool in TOOLS]
    assert b"Traceback" not in err + out
