"""A provider's stated wait in every form it comes in, as whole seconds, rounded up; or None.

None means "nothing usable was stated": nothing, nonsense, a moment that has passed, or more than
`LONGEST` seconds. Never NaN, never negative, never zero (seed: "optional positive integer"). ``now`` is
an aware datetime; its zone is the one a clock time without a zone is read in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

LONGEST = 366 * 86_400
"""Seconds. What is beyond a year is a broken number, not a wait."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNIT = r"(?:ms|milliseconds?|msecs?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
# A digit may follow a unit ("1h30m"), a letter may not.
_STEP = rf"[0-9]+(?:\.[0-9]+)?\s*{_UNIT}(?![a-z])"
_DURATION = rf"{_STEP}(?:\s*(?:,|and|,\s*and)?\s*{_STEP})*"
_ANCHOR = r"(?:again|retry(?:ing)?|retried|reset(?:s|ting)?|wait(?:ing)?|available|renews?|recovers?|back)"
_FILLER = r"(?:in|after|for|at least|about|within|another|is|be|your|request|the)"
_ANCHORED = re.compile(
    rf"\b{_ANCHOR}\b(?:\s+{_FILLER})*\s*:?\s*({_DURATION})",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"(?:^|[.,;:·(\u2014-])\s*in\s+({_DURATION})", re.IGNORECASE | re.MULTILINE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"\b(?:resets?|again|retry|available|until|renews?)\b(?:\s+(?:at|on|after))*\s+"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+"
    r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?(?:\s*,?\s*(?P<year>20[0-9]{2}))?\s*,?\s*(?:at\s+)?)?"
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2}))?(?::[0-9]{2})?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"\s*(?:\(\s*(?P<named>[A-Za-z_+\-/0-9]+)\s*\)|(?P<zone>UTC|GMT|Z|[PE][SD]?T|CES?T)\b|(?P<offset>[+-][0-9]{2}:?[0-9]{2})\b)?",
    re.IGNORECASE,
)
_SHORT_ZONES = {
    **dict.fromkeys(("PT", "PST", "PDT"), "America/Los_Angeles"),
    **dict.fromkeys(("ET", "EST", "EDT"), "America/New_York"),
    **dict.fromkeys(("CET", "CEST"), "Europe/Berlin"),
}
_BODY_SECONDS = {
    *("retry_after", "retry_after_s", "retry_after_seconds", "retry_after_secs", "retryafter"),
    *("retry_delay", "retrydelay", "quotaresetdelay", "resets_in_seconds", "reset_in_seconds", "resets_in"),
    *("retry_in", "wait_seconds", "reset_after"),
}
_BODY_MILLISECONDS = {"retry_after_ms", "retryafterms", "retry_delay_ms", "retrydelayms"}
_BODY_MOMENTS = {"resets_at", "resetsat", "reset_at", "resetat", "reset_time", "quotaresettimestamp"}


def now() -> datetime:
    """The wall clock, aware, in this machine's zone: what a program's clock times without a zone are in."""
    return datetime.now().astimezone()


def whole(seconds: float) -> int | None:
    """Rounded up to whole seconds, if it is a wait at all."""
    if not math.isfinite(seconds) or not 0 < seconds <= LONGEST:
        return None
    # A hair above a whole number is the float's own error (7.0000000001 from an epoch difference).
    return max(1, math.ceil(seconds - 1e-6))


def from_retry_after(value: str, now: datetime) -> int | None:
    """``Retry-After``: seconds (a fraction is tolerated) or an HTTP date (RFC 9110, 10.2.3)."""
    number = _number(value)
    return _until(_date(value.strip()), now) if number is None else whole(number)


def from_moment(value: object, now: datetime) -> int | None:
    """An epoch in seconds or milliseconds, an ISO 8601 or HTTP date."""
    if isinstance(value, str) and _number(value) is None:
        return _until(_date(value.strip()), now)
    epoch = _float(value)
    if epoch >= 1e11:
        epoch /= 1000
    return whole(epoch - now.timestamp())


def from_duration(value: object) -> int | None:
    """``52``, ``"52s"``, ``"1h 30m"``, ``"2h0m0s"``, ``{"seconds": 52, "nanos": 5}``."""
    if isinstance(value, Mapping):
        seconds, nanos = value.get("seconds", 0), value.get("nanos", 0)
        total = _float(seconds) + _float(nanos) / 1e9
        return whole(total)
    if isinstance(value, str) and _number(value) is None:
        text = value.strip()[:100]
        return whole(_seconds(text)) if re.fullmatch(_DURATION, text, re.IGNORECASE) else None
    return whole(_float(value))


def from_headers(headers: Mapping[str, str], now: datetime) -> int | None:
    """The longest of what is stated outright, else when the spent rate-limit windows reset."""
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    seconds = from_retry_after(lower.get("retry-after", ""), now)
    milliseconds = whole(_float(lower.get("retry-after-ms", "")) / 1000)
    return longest((seconds, milliseconds)) or longest(_windows(lower, now))


def _windows(lower: Mapping[str, str], now: datetime) -> Iterable[int | None]:
    """``x-ratelimit-reset-requests: 6m0s`` and its like; a window that says it has some left is not it."""
    for name, value in lower.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        if not _number(lower.get(name.replace("reset", "remaining"), "")):
            number = _number(value)
            moment = number is None or number > 1e9
            yield (from_moment(value, now) if moment else None) or from_duration(value)


def from_body(body: object, now: datetime) -> int | None:
    """The longest wait in the fields of a decoded JSON body, wherever they are nested."""
    found: list[int | None] = []
    pending, seen = [body], 0
    while pending and seen < 2_000:
        here = pending.pop()
        seen += 1
        if isinstance(here, Mapping):
            for key, value in here.items():
                name = str(key).lower().replace("-", "_")
                if name in _BODY_SECONDS:
                    found.append(from_duration(value))
                elif name in _BODY_MILLISECONDS:
                    found.append(whole(_float(value) / 1000))
                elif name in _BODY_MOMENTS:
                    found.append(from_moment(value, now))
                if isinstance(value, Mapping | list):
                    pending.append(value)
        elif isinstance(here, list):
            pending.extend(here)
    return longest(found)


def from_text(text: str, now: datetime) -> int | None:
    """A phrase: "in 5 minutes", "try again in 1h 30m", "resets 3pm (Europe/Berlin)", "try again at 8:24 AM".

    A clock time without a date is its next occurrence after ``now``, in the zone it names, else in
    ``now``'s. An unknown zone is no statement: a guess would be hours off.
    """
    # Runs of blanks as one: the patterns' own blanks would otherwise be tried in every split of a run.
    lines = (" ".join(line.split()) for line in text[:8_000].splitlines())
    text = "\n".join(line for line in lines if line)
    spans = [
        whole(_seconds(match[1])) for pattern in (_ANCHORED, _OPENING) for match in pattern.finditer(text)
    ]
    return longest(spans) or longest(_until(_clock(match, now), now) for match in _CLOCK.finditer(text))


def longest(waits: Iterable[int | None]) -> int | None:
    """Where a provider states several, all of them hold."""
    return max((wait for wait in waits if wait is not None), default=None)


def _number(text: str) -> float | None:
    """Of a text that holds nothing else but blanks around it: more kinds of blanks than `float` allows."""
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _float(value: object) -> float:
    """NaN for what is no number."""
    if isinstance(value, str):
        number = _number(value)
        return math.nan if number is None else number
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _seconds(text: str) -> float:
    total = 0.0
    for number, unit in re.findall(rf"([0-9]+(?:\.[0-9]+)?)\s*({_UNIT})", text.lower()):
        short = "ms" if unit.startswith(("ms", "milli")) else unit[0]
        total += float(number) * _UNITS[short]
    return total


def _date(value: str) -> datetime | None:
    if len(value) > 100:
        return None
    try:
        if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", value):
            found = datetime.fromisoformat(value)
        elif re.match(r"[A-Za-z]{3}", value):
            found = parsedate_to_datetime(value)
        else:
            return None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)  # the asctime form is naive: it is UTC


def _until(moment: datetime | None, now: datetime) -> int | None:
    return whole((moment - now).total_seconds()) if moment else None


def _clock(match: re.Match[str], now: datetime) -> datetime | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"].lower().startswith("p") else 0)
    elif match["minute"] is None:
        return None  # "try again 3 times" is no clock time
    zone = _zone(match, now)
    if zone is None or hour > 23 or minute > 59:
        return None
    local = now.astimezone(zone)
    try:
        if match["month"]:
            return _dated(match, local, hour, minute)
        moment = local.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
        if moment.astimezone(UTC) <= now:
            moment = (local + timedelta(days=1)).replace(hour=hour, minute=minute, second=0, microsecond=0)
    except (ValueError, OverflowError):
        return None
    return moment.astimezone(UTC)


def _dated(match: re.Match[str], local: datetime, hour: int, minute: int) -> datetime:
    month = _MONTHS.index(match["month"].lower()) + 1
    year = int(match["year"] or local.year)
    moment = datetime(year, month, int(match["day"]), hour, minute, tzinfo=local.tzinfo)
    if match["year"] is None and moment < local - timedelta(days=180):
        moment = moment.replace(year=year + 1)  # "resets Jan 2" said in December
    return moment.astimezone(UTC)


def _zone(match: re.Match[str], now: datetime) -> tzinfo | None:
    if match["offset"]:
        try:
            return datetime.strptime(match["offset"].replace(":", ""), "%z").tzinfo
        except ValueError:  # +99:99
            return None
    name = (match["named"] or match["zone"] or "").strip()
    if not name:
        return now.tzinfo
    if name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    try:
        return ZoneInfo(_SHORT_ZONES.get(name.upper(), name))
    except (ValueError, OSError, KeyError):  # unknown, or no zone data on this machine
        return None
