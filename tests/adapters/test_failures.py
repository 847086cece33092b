"""What a provider says, as the table's row (acceptance N, B12, B24)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters import failures
from custodes.adapters.failures import Said

NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)


def row(said: Said) -> tuple[str, bool, int | None, str]:
    found = failures.classify(said, who="codex", now=NOW)
    return found.category, found.retryable, found.retry_after_s, found.outcome


LIMIT = ("capacity", True, None, "known_failed")
BILLING = ("unavailable", False, None, "known_failed")
PROVIDER = ("provider", True, None, "unknown")
AUTH = ("auth", False, None, "known_failed")
UNREACHED = ("unavailable", True, None, "known_failed")
INVALID = ("invalid", False, None, "known_failed")
OTHER = ("provider", False, None, "unknown")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (Said(status=429), LIMIT),
        (Said(status=429, headers={"Retry-After": "9"}), ("capacity", True, 9, "known_failed")),
        (Said(status=429, message="The model is overloaded"), PROVIDER),
        (Said(status=429, codes=("overloaded_error",)), PROVIDER),
        (Said(status=429, codes=("insufficient_quota",)), BILLING),
        (Said(status=429, message="You exceeded your quota, check your plan and billing details"), BILLING),
        (
            Said(status=429, message="check your plan and billing", body={"retryDelay": "52s"}),
            ("capacity", True, 52, "known_failed"),
        ),
        (Said(status=402, message="Insufficient Balance"), BILLING),
        (Said(status=400, message="Your credit balance is too low"), BILLING),
        (Said(status=400, message="API key not valid. Please pass a valid one."), AUTH),
        (Said(status=400, codes=("context_length_exceeded",)), INVALID),
        (Said(status=404, codes=("model_not_found",)), INVALID),
        (Said(status=401), AUTH),
        (Said(status=403, codes=("model_not_found",)), AUTH),
        (Said(status=500), PROVIDER),
        (Said(status=503), PROVIDER),
        (Said(status=529), PROVIDER),
        (Said(status=418), OTHER),
        (Said(), OTHER),
        (Said(codes=("RESOURCE_EXHAUSTED",)), LIMIT),
        (
            Said(codes=("usage_limit_reached",), body={"resets_in_seconds": 5}),
            ("capacity", True, 5, "known_failed"),
        ),
    ],
)
def test_fields_come_first(said: Said, wanted: tuple[str, bool, int | None, str]) -> None:
    assert row(said) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("You've hit your 5-hour limit · resets 8am (UTC)", ("capacity", True, 7200, "known_failed")),
        (
            "You\u2019ve hit your usage limit. Purchase more credits or try again at 8:24 AM.",
            ("capacity", True, 8640, "known_failed"),
        ),
        ("exceeded retry limit, last status: 429 Too Many Requests", LIMIT),
        ("[API Error: 429 go slow]", LIMIT),
        ("You have exhausted your daily quota on this model.", LIMIT),
        ("Quota exceeded. Check your plan and billing details.", BILLING),
        ("unexpected status 402 Payment Required: Insufficient Balance", BILLING),
        ("unexpected status 529 <unknown status code>: Overloaded", PROVIDER),
        ("Selected model is at capacity. Please try a different model.", PROVIDER),
        ("We're currently experiencing high demand", PROVIDER),
        ("Error: not logged in. Please run /login", AUTH),
        ("Prompt is too long", INVALID),
        ("connect ECONNREFUSED 127.0.0.1:9", UNREACHED),
        ("failed to lookup address information: Name does not resolve", UNREACHED),
        ("getaddrinfo ENOTFOUND api.example", UNREACHED),
        ("tcp connect error: Network is unreachable (os error 101)", UNREACHED),
        ("[Errno -3] Temporary failure in name resolution", UNREACHED),
        ("request timed out", ("timeout", False, None, "unknown")),
    ],
)
def test_wording_is_read_where_there_is_nothing_else(
    text: str, wanted: tuple[str, bool, int | None, str]
) -> None:
    assert row(Said(message=text)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "402913 tokens used",
        "142900 tokens",
        "line 4031",
        "port 5290",
        "disk quota exceeded",
        "cooling down the model's temperature",
        'overage rejected, "status": "allowed"',
        "test_rate_limit_is_kept PASSED",
        "wrote 429 files",
        "HTTP 429.5 is no status",
    ],
)
def test_innocent_words_are_neither_capacity_nor_auth(text: str) -> None:
    assert failures.classify(Said(message=text), who="x", now=NOW).category not in ("capacity", "auth")


@pytest.mark.parametrize(
    "text",
    [
        "codex is cooling down",
        "all eligible adapters are at capacity",
        "capacity recovery probe already running",
        "no eligible dispatch adapter for 'codex'",
    ],
)
def test_our_own_refusals_are_never_capacity(text: str) -> None:
    assert row(Said(message=text)) == OTHER
    assert row(Said(message=f"error: {text}; 429 Too Many Requests")) == OTHER


@given(st.sampled_from(get_args(failures.Kind)), st.sampled_from([None, 7]))
def test_a_reason_of_ours_fed_back_is_never_capacity(kind: failures.Kind, wait: int | None) -> None:
    reason = failures.failure(kind, "codex", detail="status 429", retry_after_s=wait).reason
    assert failures.classify(Said(message=reason), who="x", now=NOW).category != "capacity"


@given(st.text(), st.none() | st.integers(100, 599), st.text())
def test_anything_gets_a_category_and_no_word_of_it_into_the_reason(
    text: str, status: int | None, code: str
) -> None:
    canary = "zq-canary"
    said = Said(status=status, codes=(code,), message=f"{text} {canary}")
    found = failures.classify(said, who="x", now=NOW)
    assert found.category
    assert canary not in found.reason
    assert found.retry_after_s is None or found.retryable
