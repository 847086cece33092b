"""When a quota comes back, from how its provider resets it: ``daily``, ``weekly`` or ``monthly``.

``quota_reset`` is a sentence of up to four words: how often, the day (a weekday, or a day of the month),
the time and the zone: ``daily``, ``daily 07:00 America/Los_Angeles``, ``weekly monday 09:00``,
``monthly 15 00:00 Europe/Berlin``. Left out, they are the first day, midnight and UTC (seed: the example's
``recovery_eta`` is midnight, Z).
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from custodes.adapters.errors import instead

Period = Literal["daily", "weekly", "monthly"]
PERIODS = ("daily", "weekly", "monthly")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Reset(msgspec.Struct, frozen=True, kw_only=True):
    """``day`` is a weekday from 0 (Monday) where weekly, a day from 1 where monthly (a month that is shorter
    resets on its last)."""

    every: Period
    day: int = 0
    hour: int = 0
    minute: int = 0
    zone: str = "UTC"


def parse_reset(text: str) -> Reset | None:
    """None where nothing is stated. :raises ValueError: what is wrong with it, and what would work."""
    words = text.split()
    if not words:
        return None
    every, *rest = words
    if every not in PERIODS:
        raise ValueError(f"'{every}' is no period; {instead(every, PERIODS)}")
    day = 1 if every == "monthly" else 0
    if rest and every == "weekly" and (named := _weekday(rest[0])) is not None:
        day = named
        rest = rest[1:]
    elif rest and every == "monthly" and rest[0].isdecimal():
        day = int(rest.pop(0))
        if not 1 <= day <= 31:
            raise ValueError(f"{day} is no day of a month; 1 to 31 would work")
    hour = minute = 0
    if rest and (clock := re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", rest[0])):
        hour, minute = int(clock[1]), int(clock[2])
        if hour > 23 or minute > 59:
            raise ValueError(f"'{rest[0]}' is no time of day; 00:00 to 23:59 would work")
        rest = rest[1:]
    zone = rest.pop(0) if rest else "UTC"
    _zone(zone)
    if rest:
        raise ValueError(f"'{rest[0]}' is one word too many; as in 'weekly monday 09:00 Europe/Berlin'")
    return Reset(every=every, day=day, hour=hour, minute=minute, zone=zone)  # type: ignore[arg-type]  # one of PERIODS


def next_reset(reset: Reset, now: float) -> float:
    """The first reset after ``now``; both in wall seconds since the epoch.

    A clock time that daylight saving skips is as long after midnight as ever;
    of one that comes twice, it is the first.
    """
    zone = _zone(reset.zone)
    here = datetime.fromtimestamp(now, zone)
    day = here.date()
    while True:
        if _falls_on(reset, day):
            at = datetime.combine(day, time(reset.hour, reset.minute), zone).timestamp()
            if at > now:
                return at
        day += timedelta(days=1)


def _falls_on(reset: Reset, day: date) -> bool:
    if reset.every == "weekly":
        return day.weekday() == reset.day
    if reset.every == "monthly":
        return day.day == min(reset.day, calendar.monthrange(day.year, day.month)[1])
    return True


def _weekday(word: str) -> int | None:
    lower = word.lower()
    found = [number for number, name in enumerate(_WEEKDAYS) if lower in (name, name[:3])]
    return found[0] if found else None


def _zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"'{name}' is no time zone known here; as in 'Europe/Berlin' or 'UTC'") from None
