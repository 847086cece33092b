"""A provider's stated wait in every form (acceptance N)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters import waits

NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata")


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        *(("120", 120), ("1.5", 2), (" 7 ", 7)),
        *((bad, None) for bad in ("-5", "", "abc", "1000abc", "1e12", "nan", "inf", "0", "١٢٠", "9" * 400)),
        (format_datetime(NOW + timedelta(seconds=61), usegmt=True), 61),
        ((NOW + timedelta(seconds=61)).strftime("%a %b %d %H:%M:%S %Y"), 61),
        (format_datetime(NOW - timedelta(seconds=61), usegmt=True), None),
    ],
)
def test_retry_after_is_seconds_or_a_date_or_nothing(value: str, wait: int | None) -> None:
    assert waits.from_retry_after(value, NOW) == wait


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After-Ms": "1500"}, 2),
        ({"retry-after-ms": "1e12"}, None),
        ({"retry-after": "7", "retry-after-ms": "7500"}, 8),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "3"}, None),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, 90),
        ({"anthropic-ratelimit-requests-reset": "2026-11-30T06:01:00Z"}, 60),
        ({"retry-after": "5", "x-ratelimit-reset-tokens": "9m"}, 5),
        ({}, None),
    ],
)
def test_headers_state_a_wait(headers: dict[str, str], wait: int | None) -> None:
    assert waits.from_headers(headers, NOW) == wait


@pytest.mark.parametrize(
    ("body", "wait"),
    [
        ({"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "52s"}]}}, 52),
        ({"retryDelay": {"seconds": 3, "nanos": 500_000_000}}, 4),
        ({"resets_at": NOW.timestamp() + 7200}, 7200),
        ({"resets_at": (NOW.timestamp() + 7200) * 1000}, 7200),
        ({"resets_at": NOW.timestamp() - 7200}, None),
        ({"resets_at": NOW.timestamp() + 9, "resets_in_seconds": 8.2}, 9),
        ({"retry_after": True, "retry_after_ms": "x", "reset_at": [], "resets_in": float("nan")}, None),
        ({"retry_after": "11\x1f", "retry_after_ms": "\x1c5000", "reset_at": "7\x85"}, 11),
        ([{"error": {"retry_after_ms": 1200}}], 2),
    ],
)
def test_fields_of_a_body_state_a_wait(body: object, wait: int | None) -> None:
    assert waits.from_body(body, NOW) == wait


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("in 5 minutes", 300),
        ("in 1h 30m", 5400),
        ("Please try again in 7s.", 7),
        ("Please retry in 7.5s.\nSuggested retry after 7s.", 8),
        ("Your quota will reset after 2h0m0s.", 7200),
        ("retry in 20ms", 1),
        ("wait 1 hour, 2 minutes and 3 seconds", 3723),
        ("try again in 3 days", 259_200),
        ("try again 3 times", None),
        ("I waited, in 5 mirrors", None),
        ("finished work in 5 minutes", None),
        ("resets 3pm (Mars/Olympus)", None),
        ("resets 25:00", None),
        ("resets 13pm", None),
        ("resets Feb 31, 3pm (UTC)", None),
        ("resets Dec 3, 3pm (UTC)", 291_600),
        ("try again at Dec 3rd, 2026 8:24 AM.", 267_840),
        ("resets Jan 2, 6am (UTC)", 33 * 86_400),
        ("resets at 08:00 +02:00", 86_400),
        ("resets at 08:30 +02:00", 1800),
        (" " * 8_000 + "in", None),
    ],
)
def test_phrases_state_a_wait(text: str, wait: int | None) -> None:
    assert waits.from_text(text, NOW) == wait


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("clock", "wait"),
    [
        (datetime(2026, 11, 30, 14, 0), 3600),  # noqa: DTZ001 - a wall clock, placed in a zone below
        (datetime(2026, 11, 30, 15, 0, 1), 86_399),  # noqa: DTZ001
        (datetime(2026, 11, 30, 23, 30), 55_800),  # noqa: DTZ001
    ],
    ids=["before", "just-after", "late-evening"],
)
def test_a_clock_time_is_its_next_occurrence_in_its_zone(zone: str, clock: datetime, wait: int) -> None:
    there = clock.replace(tzinfo=ZoneInfo(zone))
    for now in (there, there.astimezone(UTC), there.astimezone(ZoneInfo("Pacific/Auckland"))):
        assert waits.from_text(f"You've hit your limit · resets 3pm ({zone})", now) == wait


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("hour", "minute", "wait"), [(7, 24, 3600), (8, 25, 86_340), (23, 24, 32_400)])
def test_a_clock_time_without_a_zone_is_local(zone: str, hour: int, minute: int, wait: int) -> None:
    now = datetime(2026, 11, 30, hour, minute, tzinfo=ZoneInfo(zone))
    assert waits.from_text("visit us or try again at 8:24 AM.", now) == wait


def test_a_night_that_is_an_hour_longer_is_counted_as_such() -> None:
    now = datetime(2026, 10, 24, 23, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    assert waits.from_text("resets 8am (Europe/Berlin)", now) == 10 * 3600


words = st.text() | st.from_regex(
    r"(resets?|try again|retry) (in|at|after) [0-9.]{0,12} ?(s|m|h|am|pm|days)?( \(\w+/\w+\))?"
)
bodies = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | words,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["retry_after", "resets_at", "x"]), inner)
    ),
)


def usable(wait: int | None) -> bool:
    return wait is None or (type(wait) is int and 0 < wait <= waits.LONGEST)


@given(words)
def test_no_text_gives_anything_but_whole_positive_seconds(text: str) -> None:
    assert usable(waits.from_retry_after(text, NOW))
    assert usable(waits.from_text(text, NOW))
    assert usable(
        waits.from_headers({"retry-after": text, "retry-after-ms": text, "ratelimit-reset": text}, NOW)
    )


@given(bodies)
def test_no_body_gives_anything_but_whole_positive_seconds(body: object) -> None:
    assert usable(waits.from_body(body, NOW))
    assert usable(waits.from_duration(body))
    assert usable(waits.from_moment(body, NOW))


@given(st.floats(min_value=0.001, max_value=1e6))
def test_a_wait_is_never_rounded_down(seconds: float) -> None:
    wait = waits.from_retry_after(f"{seconds:f}", NOW)
    assert wait is not None
    assert wait >= float(f"{seconds:f}") - 1e-5
    assert wait < seconds + 1.001
