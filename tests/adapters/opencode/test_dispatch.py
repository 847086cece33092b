"""OpenCode as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Progress, Registry, Runtime, Usage
from support.replay import FIXTURES, dispatched, replay, stand_in
from support.said import AUTH, BILLING, INVALID, LIMIT, OTHER, REFUSED, SERVER, TIMEOUT, assert_failed

pytestmark = pytest.mark.anyio

SESSION = "ses_ID"
CAPTURES: dict[str, dict[str, Any]] = {
    "429.default": {**LIMIT, "retry_after_s": 7},
    "429.logs": {**LIMIT, "retry_after_s": 7},
    "401": AUTH,
    "403": AUTH,
    "402": BILLING,
    "500.default": SERVER,
    "ctx400": INVALID,
    "model404": INVALID,
    "hang": TIMEOUT,
    "cut": OTHER,
    "malformed": OTHER,
    "refused.default": REFUSED,
    "tool_sleep.sigTERM": OTHER,
    "tool_sleep.sigINT": OTHER,
    # Recorded without its log and ended by hand before it printed a word: nothing to be known.
    "429": OTHER,
    "500": OTHER,
    "529": OTHER,
    "quota": OTHER,
    "refused": OTHER,
}
SILENT = {"429", "500", "529", "quota", "refused"}


RECORDED: dict[str, dict[str, Any]] = {
    "limit": {**LIMIT, "retry_after_s": 7},
    "usage_limit": {**LIMIT, "retry_after_s": None},
    "quota": BILLING,
    "billing": BILLING,
    "auth": AUTH,
    "overload": {**SERVER, "overloaded": True},
    "server_error": SERVER,
    "context": INVALID,
    "unknown_model": INVALID,
    "cut": OTHER,
    "refused": REFUSED,
}
"""With its log on standard error, by `scripts/runtimes record`."""


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Registry.discover(tmp_path).runtime("opencode")


@pytest.mark.parametrize("case", CAPTURES)
async def test_a_capture_reads_as_what_happened(case: str, runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(
        runtime, replay(tmp_path, "opencode", FIXTURES / "opencode" / "captures" / case), tmp_path
    )
    assert_failed(result, CAPTURES[case])
    assert result.native_thread_id == (None if case in SILENT else SESSION)


@pytest.mark.parametrize("case", RECORDED)
async def test_a_run_recorded_through_the_adapter_reads_the_same_again(
    case: str, runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(runtime, replay(tmp_path, "opencode", FIXTURES / "opencode" / case), tmp_path)
    assert_failed(result, RECORDED[case])
    assert result.native_thread_id


@pytest.mark.parametrize("case", ["success", "success.effort", "tool_write.ro"])
async def test_an_answer_comes_with_its_session_and_what_it_used(
    case: str, runtime: Runtime, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await dispatched(
        runtime, replay(tmp_path, "opencode", FIXTURES / "opencode" / "captures" / case), tmp_path, seen
    )
    assert result.failure is None
    assert result.text == "MOCK-OK"
    assert result.native_thread_id == SESSION
    # It prints a cost of 0 where it knows no price.
    assert result.usage == Usage(input_tokens=11, output_tokens=5, cached_input_tokens=0)
    assert sorted(each.kind for each in seen) == ["output", "started", "usage"]


def event(kind: str, **part: object) -> str:
    return json.dumps({"type": kind, "sessionID": "ses_1", "part": part})


STEP = event("step_start")
FINISH = event("step_finish", reason="tool-calls", cost=0.25, tokens={"input": 10, "output": 1})
STOP = event("step_finish", reason="stop", cost=0.5, tokens={"input": 20, "output": 2, "cache": {"read": 3}})
TOOL = event("tool_use", tool="bash")


def says(text: str) -> str:
    return event("text", text=text)


def failed(message: str, small: str = "false") -> str:
    """A line of its log."""
    said = json.dumps(f"AI_APICallError: {message}")
    return (
        'timestamp=T level=ERROR run=1 message="stream error" providerID=p modelID=m session.id=ses_1 '
        f"small={small} agent=build mode=primary error.error={said}"
    )


def prints(*lines: str, errors: tuple[str, ...] = (), after: str = "exit 0") -> str:
    out, err = "\n".join(lines), "\n".join(errors)
    return f"#!/bin/sh\ncat <<'EOF'\n{out}\nEOF\ncat >&2 <<'EOF'\n{err}\nEOF\n{after}\n"


async def test_steps_add_up_and_the_last_one_answers(runtime: Runtime, tmp_path: Path) -> None:
    lines = (STEP, says("Let me see."), TOOL, FINISH, STEP, says("Done."), STOP)
    result = await dispatched(runtime, stand_in(tmp_path, "opencode", prints(*lines)), tmp_path)
    assert result.failure is None
    assert result.text == "Done."
    assert result.usage == Usage(input_tokens=33, output_tokens=3, cached_input_tokens=3, cost_usd=0.75)


async def test_the_model_it_asked_is_told_and_no_side_requests(runtime: Runtime, tmp_path: Path) -> None:
    asked = "timestamp=T level=INFO message=stream providerID=p modelID={} session.id=ses_1 small={} agent=x"
    lines = (asked.format("big", "false"), asked.format("little", "true"))
    result = await dispatched(
        runtime,
        stand_in(tmp_path, "opencode", prints(STEP, says("Done."), STOP, errors=lines)),
        tmp_path,
        model="p/other",
    )
    assert result.served_model == "p/big"


async def test_a_limit_ends_it_at_its_first_attempt(runtime: Runtime, tmp_path: Path) -> None:
    seen: list[Progress] = []
    limited = prints(errors=(failed("Rate limit reached. Please try again in 52s."),), after="exec sleep 300")
    result = await dispatched(runtime, stand_in(tmp_path, "opencode", limited), tmp_path, seen)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 52)
    assert "retrying" in {each.kind for each in seen}


async def test_what_is_tried_again_is_the_providers_and_ends_it_at_the_second(
    runtime: Runtime, tmp_path: Path
) -> None:
    lines = (failed("The server had an error."), failed("The server had an error."))
    result = await dispatched(
        runtime, stand_in(tmp_path, "opencode", prints(errors=lines, after="exec sleep 300")), tmp_path
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.retryable) == ("provider", True)
    assert result.failure.outcome == "unknown"


async def test_the_failure_of_a_side_request_ends_nothing(runtime: Runtime, tmp_path: Path) -> None:
    side = failed("Rate limit reached.", small="true")
    result = await dispatched(
        runtime, stand_in(tmp_path, "opencode", prints(STEP, says("Done."), STOP, errors=(side,))), tmp_path
    )
    assert result.failure is None


async def test_a_limit_after_a_tool_leaves_open_what_was_done(runtime: Runtime, tmp_path: Path) -> None:
    begun = (
        'timestamp=T level=INFO run=1 message=evaluated permission=bash pattern="rm x" '
        "action.permission=* action.action=allow action.pattern=*"
    )
    lines = (begun, failed("Rate limit reached."))
    seen: list[Progress] = []
    result = await dispatched(
        runtime,
        stand_in(tmp_path, "opencode", prints(STEP, errors=lines, after="exec sleep 300")),
        tmp_path,
        seen,
        mutable=True,
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")
    assert [each.tool for each in seen if each.kind == "tool"] == ["bash"]


async def test_a_tool_that_was_denied_was_not_used(runtime: Runtime, tmp_path: Path) -> None:
    denied = (
        "timestamp=T level=INFO run=1 message=evaluated permission=bash pattern=ls "
        "action.permission=* action.action=deny action.pattern=*"
    )
    lines = (denied, failed("Rate limit reached."))
    result = await dispatched(
        runtime, stand_in(tmp_path, "opencode", prints(STEP, errors=lines, after="exec sleep 300")), tmp_path
    )
    assert result.failure is not None
    assert result.failure.outcome == "known_failed"


async def test_an_answer_that_hit_the_output_limit_is_no_success(runtime: Runtime, tmp_path: Path) -> None:
    long = event("step_finish", reason="length", tokens={})
    result = await dispatched(
        runtime, stand_in(tmp_path, "opencode", prints(STEP, says("Half an ans"), long)), tmp_path
    )
    assert result.failure is not None
    assert result.failure.category == "invalid"


@pytest.mark.parametrize(
    "asked",
    [
        {"effort": "hihg"},
        {"schema": {"type": "object"}},
        {"model": "no-provider"},
        {"model": "--auto/x"},
        {"resume": "--auto"},
    ],
    ids=str,
)
async def test_what_it_cannot_do_is_invalid_and_runs_nothing(
    asked: dict[str, Any], runtime: Runtime, tmp_path: Path
) -> None:
    result = await dispatched(
        runtime, stand_in(tmp_path, "opencode", f"#!/bin/sh\ntouch {tmp_path}/ran\n"), tmp_path, **asked
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("invalid", "known_failed")
    assert not (tmp_path / "ran").exists()


async def test_a_misspelt_effort_is_told_its_near_miss(runtime: Runtime, tmp_path: Path) -> None:
    result = await dispatched(runtime, tmp_path, tmp_path, effort="hihg")
    assert result.failure is not None
    assert "'high'" in result.failure.reason


async def test_read_only_work_runs_as_an_agent_whose_rules_come_last(
    runtime: Runtime, tmp_path: Path
) -> None:
    here = stand_in(
        tmp_path, "opencode", f'#!/bin/sh\necho "$@" > {tmp_path}/words\nenv > {tmp_path}/environment\n'
    )
    await dispatched(runtime, here, tmp_path)
    words = (tmp_path / "words").read_text().split()
    held = (tmp_path / "environment").read_text()
    content = held.partition("OPENCODE_CONFIG_CONTENT=")[2].partition("\n")[0]
    agent = json.loads(content)["agent"][words[words.index("--agent") + 1]]
    assert agent["permission"]["*"] == "deny"
    assert not {"bash", "edit", "task", "webfetch"} & set(agent["permission"])
    assert "--auto" not in words
