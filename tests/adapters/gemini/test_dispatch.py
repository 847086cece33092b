"""Gemini CLI as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Progress, Registry, Runtime, Usage
from support.replay import FIXTURES, dispatched, replay, stand_in
from support.said import AUTH, BILLING, INVALID, LIMIT, OTHER, REFUSED, SERVER, assert_failed

pytestmark = pytest.mark.anyio

CAPTURES: dict[str, dict[str, Any]] = {
    # "Please retry in 7.5s" in words, 7 s in the field beside it; both hold.
    "429": {**LIMIT, "retry_after_s": 8},
    # The quota of a day is a limit, though its message also speaks of "plan and billing details".
    "quota": {**LIMIT, "retry_after_s": None},
    "401": AUTH,
    "403": AUTH,
    "402": BILLING,
    "500": {**SERVER, "overloaded": False},
    "529": {**SERVER, "overloaded": True},
    "ctx400": INVALID,
    "model404": INVALID,
    "cut": OTHER,
    "malformed": OTHER,
    "refused": REFUSED,
    # It ends with 0 and nothing said when it is sent a TERM or an INT: no success.
    "hang": OTHER,
    "hang.default": OTHER,
    "tool_sleep.sigTERM": OTHER,
    "tool_sleep.sigINT": OTHER,
}


RECORDED: dict[str, dict[str, Any]] = {
    "limit": {**LIMIT, "retry_after_s": 7},
    "usage_limit": {**LIMIT, "retry_after_s": 7200},
    "quota": BILLING,
    "billing": BILLING,
    "auth": AUTH,
    "overload": {**SERVER, "overloaded": True},
    "server_error": {**SERVER, "overloaded": False},
    "context": INVALID,
    "unknown_model": INVALID,
    "cut": OTHER,
    "refused": REFUSED,
}
"""With ``stream-json``, by `scripts/runtimes record`; its quota's refusal names no quota of a day."""


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Registry.discover(tmp_path).runtime("gemini")


@pytest.mark.parametrize("case", CAPTURES)
async def test_a_capture_reads_as_what_happened(case: str, runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, replay(tmp_path, "gemini", FIXTURES / "gemini" / "captures" / case), tmp_path
    )
    assert_failed(result, CAPTURES[case])
    assert result.text == ""
    assert result.usage is None


@pytest.mark.parametrize("case", RECORDED)
async def test_a_run_recorded_through_the_adapter_reads_the_same_again(
    case: str, runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(runtime, replay(tmp_path, "gemini", FIXTURES / "gemini" / case), tmp_path)
    assert_failed(result, RECORDED[case])
    assert result.native_thread_id


@pytest.mark.parametrize("case", ["success", "tool_write.ro"])
async def test_an_answer_comes_with_its_session_its_model_and_what_it_used(
    case: str, runtime: Runtime, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await dispatched(
        runtime,
        replay(tmp_path, "gemini", FIXTURES / "gemini" / "captures" / case),
        tmp_path,
        seen,
        model="gemini-2.5-flash",
    )
    assert result.failure is None
    assert result.text == "MOCK-OK"
    assert result.native_thread_id == "00000000-0000-4000-8000-000000000001"
    assert result.usage == Usage(input_tokens=11, output_tokens=5, cached_input_tokens=0)
    assert result.served_model == "gemini-2.5-flash"
    assert [each.kind for each in seen] == ["started", "output", "usage"]


INIT = '{"type":"init","session_id":"5","model":"gemini-2.5-pro"}'
SAID = '{"type":"message","role":"assistant","content":"Half","delta":true}'
TOOL = '{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{}}'
TOPIC = '{"type":"tool_use","tool_name":"update_topic","tool_id":"1","parameters":{}}'
LIMITED = '{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: slow]"}}'
DONE = json.dumps(
    {
        "type": "result",
        "status": "success",
        "stats": {
            "total_tokens": 3,
            "input_tokens": 2,
            "output_tokens": 1,
            "models": {"gemini-2.5-flash": {"output_tokens": 1}},
        },
    }
)


def prints(*lines: str, error: str = "", code: int = 0) -> str:
    """A program that prints these lines."""
    return f"#!/bin/sh\ncat <<'EOF'\n{chr(10).join(lines)}\nEOF\ncat >&2 <<'EOF'\n{error}\nEOF\nexit {code}\n"


async def test_a_limit_after_a_tool_leaves_open_what_was_done(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "gemini", prints(INIT, TOOL, LIMITED, code=173)), tmp_path, mutable=True
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")
    assert result.failure.accepted
    assert result.native_thread_id == "5"


async def test_a_tool_that_only_names_the_topic_changes_nothing(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "gemini", prints(INIT, TOPIC, LIMITED, code=173)), tmp_path
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "known_failed")


async def test_the_model_that_answered_is_told_where_it_is_another(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "gemini", prints(INIT, SAID, DONE)), tmp_path, model="gemini-2.5-pro"
    )
    assert result.failure is None
    assert result.served_model == "gemini-2.5-flash"


async def test_an_answer_without_the_word_success_is_none(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(runtime, stand_in(tmp_path, "gemini", prints(INIT, SAID)), tmp_path)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")
    assert result.failure.accepted


async def test_it_is_ended_when_it_begins_to_wait_for_a_limit(runtime: Runtime, tmp_path: Path) -> None:
    waits = (
        "#!/bin/sh\n"
        "echo 'Attempt 1 failed: You exceeded your current quota.' >&2\n"
        "echo 'Suggested retry after 52s.. Retrying after 61233ms...' >&2\n"
        "exec sleep 300\n"
    )
    seen: list[Progress] = []
    result = await dispatched(runtime, stand_in(tmp_path, "gemini", waits), tmp_path, seen)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 52)
    assert sorted(each.kind for each in seen) == ["retrying", "started"]


@pytest.mark.parametrize(
    ("code", "category"),
    [(41, "auth"), (42, "invalid"), (44, "unavailable"), (52, "invalid"), (55, "auth"), (7, "provider")],
)
async def test_its_own_exit_codes_are_read(
    code: int, category: str, runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(runtime, stand_in(tmp_path, "gemini", f"#!/bin/sh\nexit {code}\n"), tmp_path)
    assert result.failure is not None
    assert result.failure.category == category


@pytest.mark.parametrize("where", ["first", "middle", "last"])
async def test_a_limit_is_found_wherever_it_stands_in_two_hundred_kilobytes(
    where: str, runtime: Runtime, tmp_path: Path
) -> None:
    limit = """echo "Error when talking to Gemini API Full report available at: /x.json _ApiError: slow down
  status: 429" >&2"""
    flood = "yes 'plain words of no meaning' | head -n 3500 >&2"
    order = {"first": (limit, flood, flood), "middle": (flood, limit, flood), "last": (flood, flood, limit)}
    script = "\n".join(("#!/bin/sh", *order[where], "exit 1"))
    result = await dispatched(runtime, stand_in(tmp_path, "gemini", script), tmp_path)
    assert result.failure is not None
    assert result.failure.category == "capacity"


@pytest.mark.parametrize(
    "asked",
    [{"effort": "high"}, {"schema": {"type": "object"}}, {"model": "--yolo"}, {"resume": "--yolo"}],
    ids=str,
)
async def test_what_it_cannot_do_is_invalid_and_runs_nothing(
    asked: dict[str, Any], runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "gemini", f"#!/bin/sh\ntouch {tmp_path}/ran\n"), tmp_path, **asked
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("invalid", "known_failed")
    assert not (tmp_path / "ran").exists()


async def test_it_gets_its_own_key_and_no_other(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "of-its-own")
    monkeypatch.setenv("OPENAI_API_KEY", "of-another")
    await dispatched(
        runtime, stand_in(tmp_path, "gemini", f"#!/bin/sh\nenv > {tmp_path}/environment\n"), tmp_path
    )
    environment = (tmp_path / "environment").read_text()
    assert "of-its-own" in environment
    assert "of-another" not in environment


async def test_a_program_that_is_not_there_is_unavailable(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(runtime, tmp_path, tmp_path, environment={"PATH": str(tmp_path)})
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("unavailable", "known_failed")
