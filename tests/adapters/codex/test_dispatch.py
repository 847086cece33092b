"""Codex as it was recorded, through the adapter and the real process runner."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from custodes.adapters import Descriptor, DispatchResult, Progress, Registry, Usage
from custodes.adapters.codex.dispatch import CodexRuntime
from custodes.adapters.codex.stream import Stream
from support import said
from support.replay import FIXTURES, dispatched, replay, showing, stand_in
from support.said import AUTH, INVALID, OTHER, REFUSED, SERVER, assert_failed

pytestmark = pytest.mark.anyio

RECORDED = FIXTURES / "codex"
"""What it printed to this adapter, and in `CAPTURES` what it printed to others."""
CAPTURES = RECORDED / "captures"
NOW = datetime(2026, 11, 30, 6, 24, 3, tzinfo=UTC)
"""When the usage limit "try again at 8:24 AM" was recorded."""
LIMIT = {**said.LIMIT, "retry_after_s": None}
BILLING = {**said.BILLING, "retry_after_s": None}

FAILED: dict[str, dict[str, Any]] = {
    "429": LIMIT,  # recorded without that log
    "429.default": LIMIT,
    "usage_limit": {**LIMIT, "retry_after_s": 7197},
    "quota": BILLING,  # "Check your plan and billing details": nothing that comes back by itself
    "402": BILLING,
    "401": AUTH,
    "403": AUTH,  # "does not have access to model": the number is lost
    "500": SERVER,
    "500.default": SERVER,
    "529": {**SERVER, "overloaded": True},
    "400": INVALID,
    "ctx400": INVALID,
    "model404": INVALID,
    "cut": OTHER,
    "malformed": OTHER,
    "refused": REFUSED,
    "refused.default": REFUSED,
    "hang": OTHER,
    "hang.sigTERM": OTHER,  # somebody else's signal
    "tool_sleep.sigINT": {**OTHER, "accepted": True},
    "tool_sleep.sigTERM": {**OTHER, "accepted": True},
    "tool_sleep.sigKILL": {**OTHER, "accepted": True},
}
RAN: dict[str, dict[str, Any]] = {
    "limit": {**LIMIT, "retry_after_s": 7},  # "retrying … in 6.9998s", in its log
    "usage_limit": said.LIMIT,
    "quota": BILLING,
    "billing": BILLING,
    "auth": AUTH,
    "overload": {**SERVER, "overloaded": True},
    "server_error": SERVER,
    "refused": REFUSED,
    "cut": OTHER,
    "hang": OTHER,  # replayed, it just ends
    "unknown_model": INVALID,
    "context": INVALID,
}
ANSWERED = ("success", "success.bogus", "success.xhigh", "tool_write.ro", "structured")


@pytest.fixture
def descriptor(tmp_path: Path) -> Descriptor:
    return Registry.discover(tmp_path).descriptors["codex"]


async def replayed(
    descriptor: Descriptor,
    capture: str,
    folder: Path,
    *,
    now: datetime = NOW,
    seen: list[Progress] | None = None,
    **asked: object,
) -> DispatchResult:
    here = replay(folder, "codex", RECORDED / capture)
    return await dispatched(CodexRuntime(descriptor, lambda: now), here, folder, seen, **asked)


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


@pytest.mark.parametrize("case", RAN)
async def test_a_run_of_this_adapter_reads_as_what_happened(
    case: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await replayed(descriptor, case, tmp_path)
    assert_failed(result, RAN[case])


@pytest.mark.parametrize(
    ("zone", "local", "wait"),
    [
        ("UTC", "2026-11-30T08:23:59", 1),
        ("UTC", "2026-11-30T08:24:00", 60),  # it tells no seconds: not over before its minute is
        ("UTC", "2026-11-30T08:24:10.5", 50),
        ("Europe/Berlin", "2026-11-30T08:24:59", 1),
        ("Europe/Berlin", "2026-11-30T23:50:00", 34 * 60 + 8 * 3600),
        ("America/Los_Angeles", "2026-11-30T08:25:00", 86_340),
    ],
)
async def test_a_clock_time_is_its_next_occurrence_in_our_zone(
    zone: str, local: str, wait: int, descriptor: Descriptor, tmp_path: Path
) -> None:
    now = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone))
    result = await replayed(descriptor, "captures/usage_limit", tmp_path, now=now)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", wait)


async def test_a_usage_limit_as_this_adapter_meets_it_states_a_wait(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await replayed(descriptor, "usage_limit", tmp_path)
    assert result.failure is not None
    assert result.failure.category == "capacity"
    assert 0 < (result.failure.retry_after_s or 0) <= 86_400


async def test_a_silent_provider_is_the_supervisors_own_deadline(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    here = stand_in(tmp_path, "codex", f"#!/bin/sh\ncat '{CAPTURES / 'hang'}.stdout'\nexec sleep 60\n")
    result = await dispatched(CodexRuntime(descriptor), here, tmp_path, timeout_s=0.5)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("timeout", "unknown")
    assert not result.failure.retryable


@pytest.mark.parametrize("case", [case for case in ANSWERED if case != "structured"])
async def test_an_answer_comes_with_its_thread_and_what_it_used(
    case: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    result = await replayed(descriptor, f"captures/{case}", tmp_path, seen=seen)
    assert result.failure is None
    assert result.text == "MOCK-OK"
    assert result.native_thread_id == "00000000-0000-4000-8000-000000000001"
    assert result.usage in (
        Usage(input_tokens=11, output_tokens=5, cached_input_tokens=0),
        Usage(input_tokens=22, output_tokens=10, cached_input_tokens=0),
    )
    assert [each.kind for each in seen] == ["started", "output", "usage"]


async def test_an_answer_of_this_adapters_own_run(descriptor: Descriptor, tmp_path: Path) -> None:
    result = await replayed(descriptor, "success", tmp_path)
    assert result.text == "LOOPBACK-OK"
    assert result.usage == Usage(input_tokens=11, output_tokens=5, cached_input_tokens=3)


async def test_an_answer_that_fits_a_schema_comes_as_a_value(descriptor: Descriptor, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    result = await replayed(descriptor, "captures/structured", tmp_path, schema=schema)
    assert result.structured == {"verdict": "MOCK-OK", "n": 1}


START = {"type": "thread.started", "thread_id": "t1"}
TOOL = {"type": "item.started", "item": {"id": "i0", "type": "command_execution", "command": "make"}}
SAY = {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "ok"}}
DONE = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 2}}
LIMITED = "exceeded retry limit, last status: 429 Too Many Requests"
LOG = "WARN codex_core::responses_retry: stream disconnected - retrying sampling request ({})... retries=1"


def error(message: str) -> dict[str, str]:
    return {"type": "error", "message": message}


def retry(why: str, attempt: int = 1) -> dict[str, str]:
    return error(f"Reconnecting... {attempt}/5 ({why})")


async def printed(
    descriptor: Descriptor,
    folder: Path,
    *events: object,
    then: str = "",
    seen: list[Progress] | None = None,
    **asked: object,
) -> DispatchResult:
    """What a program that prints these events comes to."""
    here = showing(folder, "codex", *events, then=then)
    return await dispatched(CodexRuntime(descriptor, lambda: NOW), here, folder, seen, **asked)


async def test_a_limit_ends_it_as_soon_as_its_log_says_how_long_it_would_wait(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    later = f"echo '{LOG.format('1/5 in 51.2s')}' >&2; exec sleep 60"
    result = await printed(descriptor, tmp_path, START, retry(LIMITED), then=later, timeout_s=20.0)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 52)


async def test_its_own_short_pause_is_no_stated_wait(descriptor: Descriptor, tmp_path: Path) -> None:
    line = LOG.format("1/5 in 203.1ms")
    result = await printed(
        descriptor, tmp_path, START, retry(LIMITED), then=f"echo '{line}' >&2; exec sleep 60", timeout_s=20.0
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", None)


@pytest.mark.parametrize(
    ("why", "category"),
    [
        ("We\u2019re currently experiencing high demand, which may cause temporary errors.", "provider"),
        ("unexpected status 401 Unauthorized: no, url: https://api.example/v1", "auth"),
    ],
)
async def test_a_failure_it_would_try_again_for_long_ends_it_before_anything_was_done(
    why: str, category: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, START, retry(why), then="exec sleep 60", timeout_s=20.0)
    assert result.failure is not None
    assert result.failure.category == category


async def test_a_dropped_stream_may_be_taken_up_once(descriptor: Descriptor, tmp_path: Path) -> None:
    cut = "stream disconnected before completion: Transport error"
    result = await printed(descriptor, tmp_path, START, retry(cut), SAY, DONE)
    assert result.text == "ok"
    again = (START, retry(cut), retry(cut, 2))
    ended = await printed(descriptor, tmp_path, *again, then="exec sleep 60", timeout_s=20.0)
    assert ended.failure is not None
    assert (ended.failure.category, ended.failure.retryable) == ("provider", False)


async def test_a_limit_inside_a_dropped_stream_is_a_limit(descriptor: Descriptor, tmp_path: Path) -> None:
    why = "stream disconnected before completion: Rate limit reached for m. Please try again in 7s."
    result = await printed(descriptor, tmp_path, START, retry(why), then="exec sleep 60", timeout_s=20.0)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", 7)


async def test_a_transport_it_falls_back_from_is_no_failure(descriptor: Descriptor, tmp_path: Path) -> None:
    missing = "unexpected status 404 Not Found: no such route, url: wss://api.example/v1/responses"
    tries = [retry(missing, attempt) for attempt in (2, 3, 4, 5)]
    warning = {"type": "item.completed", "item": {"id": "w", "type": "error", "message": "Falling back"}}
    seen: list[Progress] = []
    result = await printed(descriptor, tmp_path, START, *tries, warning, SAY, DONE, seen=seen)
    assert result.text == "ok"
    assert "tool" not in [each.kind for each in seen]


async def test_in_the_middle_of_work_it_may_wait_by_itself(descriptor: Descriptor, tmp_path: Path) -> None:
    seen: list[Progress] = []
    result = await printed(descriptor, tmp_path, START, TOOL, retry(LIMITED), SAY, DONE, seen=seen)
    assert result.failure is None
    # Its start is told through another pipe than its words.
    kinds = [each.kind for each in seen if each.kind != "started"]
    assert kinds == ["tool", "output", "retrying", "output", "usage"]


async def test_a_tool_is_told_once(descriptor: Descriptor, tmp_path: Path) -> None:
    done = {"type": "item.completed", "item": TOOL["item"]}
    patch = {"type": "item.completed", "item": {"id": "i9", "type": "file_change", "changes": []}}
    seen: list[Progress] = []
    await printed(descriptor, tmp_path, START, TOOL, done, patch, SAY, DONE, seen=seen)
    assert [each.tool for each in seen if each.kind == "tool"] == ["command_execution", "file_change"]


async def test_a_failure_after_a_tool_leaves_the_outcome_unknown(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    events = (START, TOOL, error(LIMITED), {"type": "turn.failed", "error": {"message": LIMITED}})
    result = await printed(descriptor, tmp_path, *events, then="exit 1")
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("capacity", "unknown")


@pytest.mark.parametrize(
    "why",
    [
        "failed to lookup address information: Name does not resolve",
        "tcp connect error: Connection refused (os error 111)",
        "tcp connect error: No route to host (os error 113)",
    ],
)
async def test_without_a_network_it_ends_at_once_as_not_reached(
    why: str, descriptor: Descriptor, tmp_path: Path
) -> None:
    gone = retry(f"stream disconnected before completion: {why}", 2)
    result = await printed(descriptor, tmp_path, START, gone, then="exec sleep 60", timeout_s=20.0)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retryable) == ("unavailable", True)
    assert (result.failure.outcome, result.failure.accepted) == ("known_failed", False)


async def test_a_connection_that_stays_refused_ends_it_also_at_work(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    gone = error("Reconnecting... waiting for network (Connection failed: error sending request)")
    result = await printed(
        descriptor, tmp_path, START, TOOL, gone, gone, gone, then="exec sleep 60", timeout_s=20.0
    )
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("unavailable", "unknown")


@pytest.mark.parametrize("events", [[], [START], [START, SAY], [START, DONE]])
async def test_exit_0_without_a_completed_turn_and_an_answer_is_no_success(
    events: list[object], descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, *events)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


async def test_a_completed_turn_with_another_exit_code_is_no_success(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, START, SAY, DONE, then="exit 3")
    assert result.failure is not None
    assert result.failure.category == "provider"


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_noise_around_the_limit_changes_nothing(
    at: int, descriptor: Descriptor, tmp_path: Path
) -> None:
    noise = [{"type": "noise", "text": "x" * 1000}] * 200
    orders: list[list[object]] = [
        [*noise, START, error(LIMITED)],
        [START, *noise, error(LIMITED)],
        [START, error(LIMITED), *noise],
    ]
    result = await printed(descriptor, tmp_path, *orders[at], then="exit 1")
    assert result.failure is not None
    assert (result.failure.category, result.failure.retry_after_s) == ("capacity", None)


async def test_an_unknown_effort_is_refused_before_anything_runs(
    descriptor: Descriptor, tmp_path: Path
) -> None:
    result = await printed(descriptor, tmp_path, then=f"touch '{tmp_path}/ran'", effort="bogus")
    assert result.failure is not None
    assert result.failure.category == "invalid"
    assert not (tmp_path / "ran").exists()


async def test_a_program_that_is_too_old_is_missing(descriptor: Descriptor, tmp_path: Path) -> None:
    told = "echo \"error: unexpected argument '--output-schema' found\" >&2; exit 2"
    result = await printed(descriptor, tmp_path, then=told)
    assert result.failure is not None
    assert result.failure.category == "unavailable"


async def test_nothing_it_says_reaches_the_reason(descriptor: Descriptor, tmp_path: Path) -> None:
    said = error("unexpected status 401 Unauthorized: bad key sk-canary")
    result = await printed(descriptor, tmp_path, START, said, then="echo sk-canary >&2; exit 1")
    assert result.failure is not None
    assert "canary" not in str(result)


@pytest.mark.parametrize(("said", "wait"), [("7.2s", 8), ("203.1ms", None)])
def test_its_log_may_speak_before_its_event(said: str, wait: int | None) -> None:
    stream = Stream(lambda _: None, lambda: NOW)
    assert not stream.error_line(LOG.format(f"1/5 in {said}").encode())
    assert stream.output_line(json.dumps(retry(LIMITED)).encode())
    failure = stream.failure("codex")
    assert (failure.category, failure.retry_after_s) == ("capacity", wait)
