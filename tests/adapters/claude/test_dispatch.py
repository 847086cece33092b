"""Claude Code as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters import Descriptor, DispatchResult, Progress, Registry, Usage
from custodes.adapters.claude.dispatch import ClaudeRuntime
from support import said
from support.replay import FIXTURES, dispatched, replay, showing, stand_in
from support.said import AUTH, INVALID, OTHER, REFUSED, TIMEOUT, assert_failed

pytestmark = pytest.mark.anyio

RECORDED = FIXTURES / "claude"
"""What it printed to this adapter, and in `CAPTURES` what it printed to others."""
CAPTURES = RECORDED / "captures"
NOW = datetime(2026, 11, 30, 6, 24, 3, tzinfo=UTC)
"""When the subscription's limits were recorded."""
LIMIT = {**said.LIMIT, "retry_after_s": None}
BILLING = {**said.BILLING, "retry_after_s": None}
SERVER = {**said.SERVER, "overloaded": False}
OVERLOADED = {**SERVER, "overloaded": True}

FAILED: dict[str, dict[str, Any]] = {
    "429": {**LIMIT, "retry_after_s": 8},  # 7 s stated, and a pause of its own on top: never too early
    "429.oauth": {**LIMIT, "retry_after_s": 8},
    "429.r0": LIMIT,  # without a retry of its own it does not tell the wait
    "usage_limit.oauth": {**LIMIT, "retry_after_s": 7200},
    "usage_limit": LIMIT,  # an API key: no window of a subscription, and no wait told
    "usage_limit.noauth": AUTH,
    "quota": BILLING,  # "Credit balance is too low", under status 400: it waits for a person
    "402": BILLING,
    "402.oauth": BILLING,
    "401": AUTH,
    "401.oauth": AUTH,
    "403": AUTH,
    "403.oauth": AUTH,
    "500": SERVER,
    "529": OVERLOADED,
    "529.default": OVERLOADED,  # somebody's signal ended it while it meant to try again
    "400": INVALID,
    "ctx400": INVALID,
    "model404": INVALID,
    "cut": OTHER,
    "malformed": OTHER,
    "refused": REFUSED,
    "hang": TIMEOUT,  # its own, shorter one
    "hang.sigTERM": OTHER,  # somebody else's signal: no result, so nothing is known
    # A tool was running: what it changed is unknown, whatever the failure.
    "tool_sleep.sigINT": {**OTHER, "accepted": True},
    "tool_sleep.sigTERM": {**OTHER, "accepted": True},
    "tool_sleep.sigKILL": {**OTHER, "accepted": True},
}
RAN: dict[str, dict[str, Any]] = {
    "limit": {**LIMIT, "retry_after_s": 7},  # the header's; its own delay would be a second more
    "usage_limit": {**LIMIT, "retry_after_s": 7200},
    "quota": BILLING,
    "billing": BILLING,
    "auth": AUTH,
    "overload": OVERLOADED,
    "server_error": SERVER,
    "refused": REFUSED,
    "cut": OTHER,
    "hang": OTHER,  # replayed, it just ends
    "unknown_model": INVALID,
    "context": INVALID,
}
ANSWERED = ("success", "success.bogus", "success.oauth", "tool_write.ro", "structured")


@pytest.fixture
def descriptor(tmp_path: Path) -> Descriptor:
    return Registry.discover(tmp_path).descriptors["claude"]


async def replayed(
    descriptor: Descriptor,
    capture: str,
    folder: Path,
    *,
    clock: Callable[[], datetime] = lambda: NOW,
    seen: list[Progress] | None = None,
    **asked: object,
) -> DispatchResult:
    here = replay(folder, "claude", RECORDED / capture)
    return await dispatched(ClaudeRuntime(descriptor, clock), here, folder, seen, **asked)


def test_every_capture_is_judged() -> None:
    found, ran = (
        {path.name.removesuffix(".stdout") for path in folder.glob("*.stdout")}
        for folder in (CAPTURES, RECORDED)
    )
    assert found == {*FAILED, *ANSWERED}
    assert ran == {*RAN, "success"}


@pytest.mark.parametrize("case", FAILED)
async def test_a_capture_reads_as_what_happened(case: str, descriptor: Descriptor, tmp_path: Path) -> None:
    result = await replayed(descriptor, f"captures/{case}", tmp_path)
    assert_failed(result, FAILED[case])
    assert (result.text, result.structured) == ("", None)
    assert result.native_thread_id == "00000000-0000-4000-8000-000000000001"
    assert result.served_model in (None, "claude-sonnet-5")  # a model that only was asked for served nothing


@pytest.mark.parametrize("case", RAN)
async def test_a_run_of_this_adapter_reads_as_what_happened(
    case: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    said = re.search(r'"resetsAt":(\d+)', (RECORDED / f"{case}.stdout").read_text())
    now = datetime.fromtimestamp(int(said[1]) - 7200, UTC) if said else NOW
    result = await replayed(descriptor, case, tmp_path, clock=lambda: now)
    assert_failed(result, RAN[case])


async def test_a_limit_is_told_as_a_retry_and_ends_it(descriptor: Descriptor, tmp_path: Path) -> None:
    seen: list[Progress] = []
    await replayed(descriptor, "limit", tmp_path, seen=seen)
    assert [each.kind for each in seen] == ["started", "retrying"]


async def test_a_subscriptions_window_says_to_the_second_when_it_resets(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    later = datetime(2026, 11, 30, 8, 23, 3, tzinfo=UTC)
    result = await replayed(descriptor, "captures/usage_limit.oauth", tmp_path, clock=lambda: later)
    assert result.failure is not None
    assert result.failure.retry_after_s == 60


async def test_a_silent_provider_is_the_supervisors_own_deadline(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    script = f"#!/bin/sh\ncat '{CAPTURES / 'hang.sigTERM'}.stdout'\nexec sleep 60\n"
    here = stand_in(tmp_path, "claude", script)
    result = await dispatched(ClaudeRuntime(descriptor), here, tmp_path, timeout_s=0.5)
    assert_failed(result, TIMEOUT)


@pytest.mark.parametrize("case", [case for case in ANSWERED if case != "structured"])
async def test_an_answer_comes_with_its_session_its_model_and_what_it_used(
    case: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await replayed(descriptor, f"captures/{case}", tmp_path, seen=seen)
    assert result.failure is None
    assert result.text == "MOCK-OK"
    assert result.served_model == "claude-sonnet-5"
    assert result.usage is not None
    assert result.usage.cost_usd is not None
    assert (result.usage.input_tokens, result.usage.output_tokens) in ((11, 5), (22, 10))
    assert [each.kind for each in seen if each.kind != "usage"][:2] == ["started", "output"]


async def test_input_tokens_count_the_cached_ones_and_name_them(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await replayed(descriptor, "success", tmp_path)
    assert result.text == "LOOPBACK-OK"
    assert result.usage is not None
    assert result.usage == Usage(
        input_tokens=14, output_tokens=5, cached_input_tokens=3, cost_usd=result.usage.cost_usd
    )


async def test_an_answer_that_fits_a_schema_is_no_tool_activity(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await replayed(descriptor, "captures/structured", tmp_path, schema={"type": "object"}, seen=seen)
    assert result.structured == {"verdict": "MOCK-OK", "n": 1}
    assert "tool" not in [each.kind for each in seen]


INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-sonnet-5"}
TOOL = {
    "type": "assistant",
    "message": {"model": "claude-sonnet-5", "content": [{"type": "tool_use", "name": "Bash", "input": {}}]},
}
RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 7300, "error_status": 429}
SAID = {"is_error": True, "api_error_status": 429, "api_error_type": "rate_limit_error"}
LIMITED = {"type": "result", "subtype": "success", "result": "API Error: Request rejected (429)", **SAID}
DONE = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}


async def printed(
    descriptor: Descriptor,
    folder: Path,
    *events: object,
    then: str = "",
    seen: list[Progress] | None = None,
    **asked: object,
) -> DispatchResult:
    """What a program that prints these events comes to."""
    here = showing(folder, "claude", *events, then=then)
    return await dispatched(ClaudeRuntime(descriptor), here, folder, seen, **asked)


async def test_a_limit_ends_it_at_once_instead_of_waiting_with_it(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, INIT, RETRY, then="exec sleep 60", timeout_s=20.0)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 8)


async def test_in_the_middle_of_work_it_may_wait_by_itself(descriptor: Descriptor, tmp_path: Path) -> None:
    result = await printed(descriptor, tmp_path, INIT, TOOL, RETRY, TOOL, DONE)
    assert result.failure is None
    assert result.text == "ok"


async def test_a_limit_after_a_tool_leaves_the_outcome_unknown(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, INIT, TOOL, RETRY, LIMITED, then="exit 1")
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")
    assert result.failure.retry_after_s == 8
    assert result.failure.accepted


LOG = """[log_1] sending request {
  headers: {
    "x-api-key": "***",
  },
}
[log_1] response error (error; no more retries left) {
  status: 429,
  headers: {
    "retry-after": "%s",
  },
}
"""


@pytest.mark.parametrize(("stated", "wait"), [("3600", 3600), ("1.5", 2), ("-5", None), ("soon", None)])
async def test_a_wait_it_would_not_sit_out_is_read_from_the_response(
    stated: str, wait: int | None, descriptor: Descriptor, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(LOG % stated)
    limited = json.dumps(LIMITED)
    told = f"cat '{tmp_path}/log'; echo '{limited}'; exit 1"
    result = await printed(descriptor, tmp_path, INIT, then=told)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", wait)


async def test_the_wait_of_an_earlier_request_is_not_that_of_a_later_one(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(f"{LOG % 3600}[log_2] sending request {{\n")
    limited = json.dumps(LIMITED)
    told = f"cat '{tmp_path}/log'; echo '{limited}'; exit 1"
    result = await printed(descriptor, tmp_path, INIT, then=told)
    assert result.failure is not None
    assert result.failure.retry_after_s is None


async def test_its_own_short_pause_is_no_stated_wait(descriptor: Descriptor, tmp_path: Path) -> None:
    result = await printed(descriptor, tmp_path, INIT, {**RETRY, "retry_delay_ms": 561})
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", None)


@pytest.mark.parametrize("events", [[], [INIT], [INIT, TOOL], [INIT, {**DONE, "result": ""}]])
async def test_exit_0_without_the_result_of_success_is_no_success(
    events: list[object], descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, *events)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


async def test_a_result_that_is_not_an_error_in_so_many_words_is_one(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    vague = {key: value for key, value in DONE.items() if key != "is_error"}
    result = await printed(descriptor, tmp_path, INIT, vague)
    assert result.failure is not None
    assert result.failure.category == "provider"


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_noise_around_the_limit_changes_nothing(
    at: int, descriptor: Descriptor, tmp_path: Path
) -> None:
    noise = [{"type": "noise", "text": "x" * 1000} for _ in range(200)]
    events: list[object] = [[*noise, INIT, LIMITED], [INIT, *noise, LIMITED], [INIT, LIMITED, *noise]][at]
    result = await printed(descriptor, tmp_path, *events, then="exit 1")
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", None)


async def test_a_program_that_is_too_old_is_missing(descriptor: Descriptor, tmp_path: Path) -> None:
    told = "echo \"error: unknown option '--effort'\" >&2; exit 1"
    result = await printed(descriptor, tmp_path, then=told)
    assert result.failure is not None
    assert result.failure.category == "unavailable"
    assert "too old" in result.failure.reason


async def test_an_unknown_effort_is_refused_before_anything_runs(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, then=f"touch '{tmp_path}/ran'", effort="bogus")
    assert result.failure is not None
    assert result.failure.category == "invalid"
    assert "'bogus'" in result.failure.reason
    assert not (tmp_path / "ran").exists()


async def test_nothing_it_says_reaches_the_reason(descriptor: Descriptor, tmp_path: Path) -> None:
    secret = {**LIMITED, "result": "429 for key sk-ant-api03-canary"}
    result = await printed(descriptor, tmp_path, INIT, secret, then="echo sk-ant-api03-canary >&2; exit 1")
    assert result.failure is not None
    assert "canary" not in str(result)


async def test_the_model_that_answered_is_told_and_not_the_one_that_was_asked_for(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    other = {"type": "assistant", "message": {"model": "claude-haiku-4-5", "content": []}}
    result = await printed(descriptor, tmp_path, INIT, other, DONE, model="claude-opus-5")
    assert result.served_model == "claude-haiku-4-5"
