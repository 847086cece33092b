from __future__ import annotations

from datetime import UTC, datetime

import pytest

from custodes.overseer.quota import next_reset, parse_reset


def after(stated: str, moment: str) -> str:
    reset = parse_reset(stated)
    assert reset is not None
    return datetime.fromtimestamp(
        next_reset(reset, datetime.fromisoformat(moment).timestamp()), UTC
    ).isoformat()


@pytest.mark.parametrize(
    ("stated", "now", "reset"),
    [
        ("daily", "2026-07-20T13:00:00+00:00", "2026-07-21T00:00:00+00:00"),
        ("daily", "2026-07-21T00:00:00+00:00", "2026-07-22T00:00:00+00:00"),
        ("daily 07:30", "2026-07-20T07:29:59+00:00", "2026-07-20T07:30:00+00:00"),
        ("daily 00:00 America/Los_Angeles", "2026-07-20T13:00:00+00:00", "2026-07-21T07:00:00+00:00"),
        ("weekly", "2026-07-20T00:00:00+00:00", "2026-07-27T00:00:00+00:00"),
        ("weekly thu 09:00 Europe/Berlin", "2026-07-20T00:00:00+00:00", "2026-07-23T07:00:00+00:00"),
        ("monthly", "2026-12-31T23:59:00+00:00", "2027-01-01T00:00:00+00:00"),
        ("monthly 31", "2026-02-01T00:00:00+00:00", "2026-02-28T00:00:00+00:00"),
        ("monthly 15 06:00", "2026-07-15T06:00:00+00:00", "2026-08-15T06:00:00+00:00"),
        # The clocks of Berlin go from 02:00 to 03:00 on 2026-03-29, and back on 2026-10-25.
        ("daily 02:30 Europe/Berlin", "2026-03-29T00:00:00+00:00", "2026-03-29T01:30:00+00:00"),
        ("daily 02:30 Europe/Berlin", "2026-10-25T00:00:00+00:00", "2026-10-25T00:30:00+00:00"),
    ],
)
def test_the_next_reset_is_the_first_after_now(stated: str, now: str, reset: str) -> None:
    assert after(stated, now) == reset


def test_nothing_stated_is_no_reset() -> None:
    assert parse_reset("") is None


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ("hourly", "'hourly' is no period"),
        ("daily 25:00", "no time of day"),
        ("monthly 32", "no day of a month"),
        ("daily 07:00 Mars/Olympus", "no time zone"),
        ("daily 07:00 UTC now", "one word too many"),
    ],
)
def test_what_is_no_reset_says_what_would_be_one(stated: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_reset(stated)
