"""The server as a client meets it: a process of its own, on either loop, driven by the SDK's own client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from support.cos import Answer, Cos
from support.mcp_server import command, complaint, connected, document
from support.overseer import kept_in_a_file

pytestmark = pytest.mark.anyio

ROLE = "reviewer"


async def test_the_tools_are_listed_with_schemas_that_teach(project: Path, anyio_backend: str) -> None:
    async with connected(project, anyio_backend) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == [
            "cos_asks",
            "cos_cancel",
            "cos_dispatch",
            "cos_fan_out",
            "cos_health",
            "cos_overseer",
            "cos_role_info",
            "cos_supervision_config",
            "cos_trace",
        ]
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["additionalProperties"] is False
            assert all(field.get("description") for field in tool.input_schema["properties"].values())
        assert (await document(client, "cos_role_info", role=ROLE))["roles"][0]["tier"] == "balanced"
        assert len((await document(client, "cos_role_info"))["roles"]) == 11
        error = await complaint(client, "cos_dispatch", role="reviwer", prompt="x")
        assert error["kind"] == "arguments"
        assert error["message"].startswith(
            "unknown role 'reviwer'; did you mean 'reviewer'? Known: researcher,"
        )
        error = await complaint(client, "cos_fan_out", children=[{"role": ROLE, "promt": "x"}])
        assert "children[0].promt" in error["message"]
        assert "did you mean 'prompt'?" in error["message"]


async def test_a_child_does_work_and_hands_back_evidence_and_a_limit_is_refused_as_data(
    programs: Path, anyio_backend: str
) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with connected(programs, anyio_backend) as client:
        result = await client.call_tool(
            "cos_dispatch", {"role": ROLE, "prompt": "What is here?", "model": "look"}, progress_callback=hear
        )
        outcome = result.structured_content
        assert json.loads(result.content[0].text) == outcome  # type: ignore[union-attr]
        assert (outcome["status"], outcome["evidence"]["summary"]) == ("done", "reviewer saw a.txt")
        assert [number for number, _ in heard] == sorted({number for number, _ in heard})
        assert [message for _, message in heard] == [
            "reviewer: queued as reviewer",
            "reviewer: runs on command:look (look)",
            "reviewer: done: reviewer saw a.txt",
        ]

        limited = {"role": ROLE, "prompt": "x", "model": "limit"}
        fan = await document(client, "cos_fan_out", children=[limited, {**limited, "model": "look"}])
        first, second = fan["outcomes"]
        assert (first["failure"]["category"], first["failure"]["retry_after_s"]) == ("capacity", 60)
        assert second["status"] == "done"

        refusal = (await document(client, "cos_dispatch", **limited))["refusal"]
        assert refusal["category"] == "capacity"
        assert "command:limit is cooling down" in refusal["reason"]
        assert 0 < refusal["retry_after_s"] <= 60
        assert [wait["pool"] for wait in refusal["waiting"]] == ["command:limit"]
        assert refusal["route"]["model"] == "limit"

        attempts = (await document(client, "cos_trace"))["attempts"]
        assert [row["status"] for row in attempts] == ["done", "failed", "done", "refused"]
        assert {row["conversation"] for row in attempts} == {outcome["conversation"]}

        health = await document(client, "cos_health")
        assert health["adapters"][0]["limited"] == ["command:limit"]
        cleared = await document(client, "cos_health", action="clear", target="command:limit")
        assert cleared["cleared"] == ["command:limit"]
    (line,) = (programs / ".coding-os" / "extensions-audit.log").read_text().splitlines()
    assert json.loads(line)["by"] == "mcp"


async def pids(programs: Path) -> list[int]:
    """The slow program's, and its tool's in a session of its own, once both run."""
    text = await anyio.to_thread.run_sync((programs / "pids").read_text)
    return [int(word) for word in text.split()]


SLOW = {"role": "implementer", "prompt": "x", "model": "slow", "mutable": True}


async def test_a_call_that_is_cancelled_ends_its_children_and_all_they_started(
    programs: Path, anyio_backend: str
) -> None:
    os.mkfifo(programs / "pids")
    async with connected(programs, anyio_backend) as client:
        running: list[int] = []
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "cos_dispatch", SLOW)
            running += await pids(programs)
            group.cancel_scope.cancel()
        # The client does not wait for what it cancelled; the row is closed once the proof is there.
        with anyio.fail_after(30):
            while (attempts := (await document(client, "cos_trace"))["attempts"])[0]["status"] == "running":
                await anyio.lowlevel.checkpoint()
        assert [row["status"] for row in attempts] == ["cancelled"]
        assert not any(map(psutil.pid_exists, running))


def started(project: Path, loop: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(project, loop), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project
    )


@pytest.mark.parametrize("end", ["closed", "SIGTERM"])
async def test_the_end_of_the_client_or_of_the_server_ends_the_children_too(
    programs: Path, anyio_backend: str, end: str
) -> None:
    os.mkfifo(programs / "pids")
    server = started(programs, anyio_backend)
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        opening = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        for message in (
            {"id": 1, "method": "initialize", "params": opening},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "cos_dispatch", "arguments": SLOW}},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()
        running = await pids(programs)
        if end == "closed":
            server.stdin.close()
        else:
            server.send_signal(signal.SIGTERM)
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync(server.wait)
        assert not any(map(psutil.pid_exists, running))
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


async def test_one_policy_reads_back_the_same_from_the_command_line_mcp_and_python(
    programs: Path, cos: Cos, anyio_backend: str
) -> None:
    from custodes.policy.overview import overview_of
    from custodes.policy.settings import Settings

    async with connected(programs, anyio_backend) as client:
        changed = await document(
            client,
            "cos_supervision_config",
            action="set",
            mode="adaptive",
            complexity_threshold="complex",
            max_parallel=5,
            cooldown={"default_seconds": 7},
            orchestrator={"adapter": "command"},
            roles={ROLE: {"model": "look"}},
            presets={"night": {"architect": {"model": "slow"}}},
            preset="night",
        )
        shown = await document(client, "cos_supervision_config", action="show")
        error = await complaint(
            client, "cos_supervision_config", action="set", roles={ROLE: {"model": "loook"}}
        )
        assert error["kind"] == "settings"
        assert "model 'loook' is not declared by adapter 'command'" in error["message"]
    line = await anyio.to_thread.run_sync(lambda: cos("supervision", "show", "--format", "json").document)
    assert changed == shown == line
    python = json.loads(json.dumps(shown["policy"]))
    settings = Settings(programs).read().policy
    assert python["mode"] == settings.mode == "adaptive"
    assert overview_of(programs).policy == settings
    assert python["complexity_threshold"] == settings.complexity_threshold == "COMPLEX"


async def beside(cos: Cos, *words: str) -> Answer:
    """The command line's document, beside the loop that the client is on: it runs one of its own."""
    return await anyio.to_thread.run_sync(lambda: cos(*words, "--format", "json"))


async def test_a_profile_of_the_overseer_is_seen_and_switched_as_on_the_command_line(
    cos: Cos, project: Path, tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kept_in_a_file(tmp_path)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    async with connected(project, anyio_backend) as client:
        status = await document(client, "cos_overseer")
        assert status == (await beside(cos, "overseer", "status")).document
        order = {"action": "switch", "profile": "w", "target": "b/two"}
        error = await complaint(client, "cos_overseer", **order, was="their/own")
        assert (error["kind"], model.read_text()) == ("overseer", "a/one")
        done = await document(client, "cos_overseer", **order, was="a/one")
        assert (done["new_model"], done["by"], model.read_text()) == ("b/two", "mcp", "b/two")
        told = await document(client, "cos_overseer", action="incidents")
        assert told == (await beside(cos, "overseer", "incidents")).document
        assert [each["by"] for each in told["incidents"]] == ["mcp"]
