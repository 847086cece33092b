"""What Codex's error messages mean. It states no status field: words and a few fixed forms are all it has."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from custodes.adapters import failures, foreign, waits

_URL = re.compile(r",? url: \S+")
_CUT = re.compile(r"stream disconnected before completion|stream closed before|error decoding response body")
_IDLE = re.compile(r"idle timeout waiting", re.IGNORECASE)
_UNREACHED = re.compile(r"connection failed|waiting for network|error sending request", re.IGNORECASE)
_NO_ACCESS = re.compile(r"does not have access to (?:the )?model", re.IGNORECASE)
"""A 403, which loses its number. A 404 reads "does not exist or you do not have access to it"."""
_LOGIN = re.compile(r"access token could not be refreshed|log out and sign in|codex login", re.IGNORECASE)


def read(message: str, now: datetime) -> tuple[failures.Kind, int | None]:
    """The row of the table a message falls into, and the wait it states in seconds."""
    text = _URL.sub("", message)
    said = _document(text) or failures.Said(message=text)
    kind = _own(text) if said.status is None and not said.codes else None
    kind = kind or failures.kind_of(said, now)
    if kind == "other" and _CUT.search(text):
        kind = "cut"  # only where what comes after it is no limit and no overload
    return kind, _wait(said, now)


def _wait(said: failures.Said, now: datetime) -> int | None:
    """The stated wait. A clock time comes without its seconds, so that of the minute that runs is not over
    before the minute is (else it would read as tomorrow's)."""
    begun = now.replace(second=0, microsecond=0)
    stated, from_its_begin = (
        failures.stated_wait(said, at) for at in (now, begun - timedelta(microseconds=1))
    )
    if from_its_begin == 1 != stated:
        return waits.whole((begun + timedelta(minutes=1) - now).total_seconds())
    return stated


def _own(text: str) -> failures.Kind | None:
    if _IDLE.search(text):
        return "timeout"
    if _UNREACHED.search(text):
        return "refused"
    if _NO_ACCESS.search(text) or _LOGIN.search(text):
        return "auth"
    return None


def _document(text: str) -> failures.Said | None:
    """A message that is the provider's own error document, as of a rejected request."""
    if not text.startswith("{"):
        return None
    body = foreign.mapping(foreign.decode(text))
    error = foreign.mapping(body.get("error"))
    codes = tuple(word for name in ("code", "type") if (word := foreign.text(error.get(name))))
    return (
        failures.Said(codes=codes, message=foreign.text(error.get("message")), body=body) if error else None
    )
