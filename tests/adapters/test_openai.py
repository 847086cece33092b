"""The OpenAI-compatible adapter against a real server on loopback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Progress, Registry
from custodes.adapters.descriptor import Endpoint, Model
from custodes.adapters.openai.dispatch import runtime
from support import provider as serve

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"summary": {"type": "string"}}}


def descriptor(url: str, **fields: Any) -> Descriptor:
    found = Registry.discover(Path(__file__).parent).descriptors["openai"]
    endpoint = Endpoint(base_url=url, key_env="TEST_PROVIDER_KEY")
    return msgspec.structs.replace(found, endpoint=endpoint, **fields)


def request(**fields: Any) -> DispatchRequest:
    base: dict[str, Any] = {
        "run_id": "r1",
        "role": "reviewer",
        "prompt": "look",
        "mutable": False,
        "cwd": ".",
        "timeout_s": 20.0,
        "model": "m1",
    }
    return DispatchRequest(**{**base, **fields})


async def ask(running: serve.Provider, seen: list[Progress] | None = None, **fields: Any) -> DispatchResult:
    sink = (seen if seen is not None else []).append
    return await runtime(descriptor(running.url)).dispatch(request(**fields), sink)


async def test_a_streamed_answer_comes_with_usage_model_and_progress() -> None:
    seen: list[Progress] = []
    with serve.provider(serve.answer("hello there")) as running:
        result = await ask(running, seen, environment={"TEST_PROVIDER_KEY": "k-1"})
    assert result.failure is None
    assert result.text == "hello there"
    assert result.served_model == "served-1"
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens) == (
        11,
        5,
        3,
    )
    assert [p.kind for p in seen] == ["started", "output", "output", "usage"]
    [asked] = running.journal
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer k-1"
    assert asked.body["stream"] is True
    assert asked.body["messages"] == [{"role": "user", "content": "look"}]
    assert "reasoning_effort" not in asked.body


async def test_loopback_needs_no_key_and_an_effort_is_passed_on() -> None:
    with serve.provider(serve.answer("ok then")) as running:
        result = await ask(running, effort="low")
    assert result.failure is None
    assert "authorization" not in running.journal[0].headers
    assert running.journal[0].body["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    "reply",
    [
        serve.plain("hello there"),
        serve.answer("hello there", usage=False),
        serve.answer("hello there", done=False),
    ],
    ids=["not-streamed", "no-usage", "no-done-mark"],
)
async def test_servers_that_lack_a_nicety_are_read_as_well(reply: serve.Reply) -> None:
    with serve.provider(reply) as running:
        result = await ask(running)
    assert result.failure is None
    assert result.text == "hello there"


@pytest.mark.parametrize("text", ['{"summary": "x"}', '```json\n{"summary": "x"}\n```'])
async def test_a_schema_is_sent_and_its_answer_decoded(text: str) -> None:
    with serve.provider(serve.answer(text)) as running:
        result = await ask(running, schema=SCHEMA)
    assert result.structured == {"summary": "x"}
    assert running.journal[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_a_server_that_rejects_the_schema_gets_it_in_the_prompt() -> None:
    script = (serve.error(400, "response_format is not supported"), serve.answer('{"summary": "x"}'))
    with serve.provider(*script) as running:
        result = await ask(running, schema=SCHEMA)
    assert result.structured == {"summary": "x"}
    first, second = running.journal
    assert "response_format" in first.body
    assert "response_format" not in second.body
    assert "summary" in second.body["messages"][0]["content"]
    assert "stream_options" in second.body


async def test_a_server_that_rejects_stream_options_is_asked_without() -> None:
    script = (serve.error(400, "unknown field: stream_options"), serve.answer("hello"))
    with serve.provider(*script) as running:
        assert (await ask(running)).failure is None
    assert "stream_options" not in running.journal[1].body


async def test_a_server_that_rejects_everything_is_asked_a_bounded_number_of_times() -> None:
    with serve.provider(serve.error(400, "nope")) as running:
        result = await ask(running, schema=SCHEMA)
    assert result.failure is not None
    assert result.failure.category == "invalid"
    assert len(running.journal) == 2


@pytest.mark.parametrize(
    ("reply", "category", "retryable", "wait", "outcome"),
    [
        (serve.error(429, "slow down", headers={"Retry-After": "7"}), "capacity", True, 7, "known_failed"),
        (
            serve.error(429, "slow down", headers={"retry-after-ms": "1500"}),
            "capacity",
            True,
            2,
            "known_failed",
        ),
        (serve.error(429, "slow down"), "capacity", True, None, "known_failed"),
        (serve.error(429, "Please try again in 1h 30m."), "capacity", True, 5400, "known_failed"),
        (
            serve.error(
                429,
                "x",
                headers={"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"},
            ),
            *("capacity", True, 360, "known_failed"),
        ),
        (serve.error(429, "limit", details=[{"retryDelay": "52s"}]), "capacity", True, 52, "known_failed"),
        (serve.error(429, "x", "insufficient_quota"), "unavailable", False, None, "known_failed"),
        (serve.error(429, "The model is overloaded"), "provider", True, None, "unknown"),
        (serve.error(402, "Insufficient Balance"), "unavailable", False, None, "known_failed"),
        (serve.error(401, "bad key"), "auth", False, None, "known_failed"),
        (serve.error(403, "no"), "auth", False, None, "known_failed"),
        (serve.error(404, "no such model", "model_not_found"), "invalid", False, None, "known_failed"),
        (serve.error(400, "maximum context length"), "invalid", False, None, "known_failed"),
        (serve.error(500, "oops"), "provider", True, None, "unknown"),
        (serve.error(503, "busy", headers={"Retry-After": "3"}), "provider", True, 3, "unknown"),
        (serve.error(529, "Overloaded"), "provider", True, None, "unknown"),
        (serve.status(502, b"<html>bad gateway</html>"), "provider", True, None, "unknown"),
        (serve.status(200, b"<html>hello</html>"), "provider", False, None, "unknown"),
        (serve.status(200, b"[" * 100_000), "provider", False, None, "unknown"),
        (serve.status(302, {}, {"location": "http://127.0.0.1:1/"}), "provider", False, None, "unknown"),
    ],
)
async def test_what_a_server_says_becomes_the_tables_row(
    reply: serve.Reply, category: str, retryable: bool, wait: int | None, outcome: str
) -> None:
    with serve.provider(reply) as running:
        result = await ask(running)
    failure = result.failure
    assert failure is not None
    assert (failure.category, failure.retryable, failure.retry_after_s, failure.outcome) == (
        category,
        retryable,
        wait,
        outcome,
    )
    assert result.text == ""
    assert failure.reason.count("slow down") == 0
    assert len(running.journal) <= 2


async def test_a_retry_after_date_is_a_wait_from_now() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    with serve.provider(serve.error(429, "limit", headers={"Retry-After": date})) as running:
        failure = (await ask(running)).failure
    assert failure is not None
    assert failure.retry_after_s is not None
    assert 1 <= failure.retry_after_s <= 90


@pytest.mark.parametrize(
    ("reply", "category", "accepted"),
    [
        (serve.stream(serve.delta("par"), end=False), "provider", True),
        (serve.stream(serve.delta("par")), "provider", True),
        (serve.stream(serve.delta("whole"), serve.delta(None, "stop"), end=False), "provider", True),
        (serve.stream(serve.event(b'{"choices": [')), "provider", False),
        (serve.stream(serve.delta("", role="assistant"), serve.delta(None, "stop")), "provider", False),
        (serve.answer("half an ans", finish="length"), "invalid", True),
        (serve.answer("call me", finish="tool_calls"), "provider", True),
        (
            serve.stream(serve.delta(None, "stop", refusal="I cannot"), serve.event(b"[DONE]")),
            "invalid",
            False,
        ),
    ],
    ids=["cut", "no-finish", "cut-after-finish", "torn-event", "empty", "length", "tools", "refusal"],
)
async def test_half_an_answer_is_no_success(reply: serve.Reply, category: str, accepted: bool) -> None:
    with serve.provider(reply) as running:
        result = await ask(running)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retryable) == (category, False)
    assert result.failure.accepted is accepted
    assert result.text == ""


async def test_a_limit_inside_a_stream_is_a_limit() -> None:
    said = {"error": {"message": "limit", "code": 429, "type": "rate_limit_exceeded", "retry_after": 9}}
    with serve.provider(serve.stream(serve.delta("par"), serve.event(said))) as running:
        failure = (await ask(running)).failure
    assert failure is not None
    assert (failure.category, failure.retry_after_s, failure.accepted) == ("capacity", 9, True)


@pytest.mark.parametrize(
    "reply", [serve.silence(), serve.slow_headers(), serve.trickle()], ids=["s", "h", "t"]
)
async def test_one_deadline_stands_over_silence_slow_headers_and_a_trickle(reply: serve.Reply) -> None:
    with serve.provider(reply) as running:
        result = await ask(running, timeout_s=0.3)
    assert result.failure is not None
    assert (result.failure.category, result.failure.retryable, result.failure.outcome) == (
        "timeout",
        False,
        "unknown",
    )


@pytest.mark.parametrize(
    "piece", [b"data: " + b"x" * 60_000, serve.delta("y" * 60_000)], ids=["endless-event", "endless-answer"]
)
async def test_a_flood_is_stopped_at_the_bound(piece: bytes) -> None:
    with serve.provider(serve.flood(piece)) as running:
        result = await ask(running)
        assert await anyio.to_thread.run_sync(running.gone.wait, 10)
    assert result.failure is not None
    assert (result.failure.category, result.failure.outcome) == ("provider", "unknown")


async def test_cancelling_hangs_up() -> None:
    with serve.provider(serve.trickle()) as running:
        async with anyio.create_task_group() as group:

            def cancel_at_output(progress: Progress) -> None:
                if progress.kind == "output":
                    group.cancel_scope.cancel()

            call = runtime(descriptor(running.url)).dispatch(request(), cancel_at_output)
            await call
            pytest.fail("the cancellation was swallowed")
        assert await anyio.to_thread.run_sync(running.gone.wait, 10)


async def test_a_refused_connection_is_unavailable_and_may_be_tried_again() -> None:
    with serve.provider(serve.silence()) as running:
        url = running.url
    failure = (await runtime(descriptor(url)).dispatch(request(), lambda _: None)).failure
    assert failure is not None
    assert (failure.category, failure.retryable, failure.outcome) == ("unavailable", True, "known_failed")


async def test_nothing_is_sent_for_a_request_that_cannot_be_served() -> None:
    with serve.provider(serve.answer("hello")) as running:
        no_model = await ask(running, model=None)
        bad_effort = await ask(running, effort="enormous")
        bad_key = await ask(running, environment={"TEST_PROVIDER_KEY": "two\nlines"})
    categories = [r.failure.category for r in (no_model, bad_effort, bad_key) if r.failure]
    assert categories == ["invalid", "invalid", "auth"]
    assert running.journal == []


async def test_a_foreign_host_without_a_key_is_auth_and_never_asked() -> None:
    failure = (
        await runtime(descriptor("https://models.invalid/v1")).dispatch(request(), lambda _: None)
    ).failure
    assert failure is not None
    assert failure.category == "auth"
    assert "TEST_PROVIDER_KEY" in failure.reason


async def test_a_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serve.provider(serve.answer("hello")) as running:
        assert (await ask(running)).failure is None


async def test_no_secret_stands_in_any_field_of_a_result() -> None:
    echo = serve.error(401, "Incorrect API key provided: k-canary", "invalid_api_key")
    with serve.provider(echo) as running:
        result = await ask(running, environment={"TEST_PROVIDER_KEY": "k-canary"})
    assert b"k-canary" not in msgspec.json.encode(result)


async def test_the_catalogs_default_is_asked_where_none_is_named() -> None:
    with serve.provider(serve.answer("hello")) as running:
        found = descriptor(running.url, models=(Model(id="a"), Model(id="b", default=True)))
        await runtime(found).dispatch(request(model=None), lambda _: None)
    assert running.journal[0].body["model"] == "b"
