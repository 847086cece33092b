"""What a provider or runtime said, as one `Failure`: status and fields first, wording last.

The source of its rows is seed 000 ("Normalization is an adapter obligation"); docs/adapters.md shows them.
Wording is matched with word boundaries, since "402913 tokens" is no 402, and our own refusals are never a
limit: a child may print one.

Reasons are composed here and hold nothing a provider said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from custodes.adapters import waits
from custodes.adapters.port import Category, Failure

Kind = Literal[
    "limit",
    "billing",
    "overloaded",
    "server",
    "timeout",
    "cut",
    "auth",
    "missing",
    "refused",
    "invalid",
    "other",
]
"""A row of the table."""

_TABLE: dict[Kind, tuple[Category, bool, bool, str]] = {
    # kind: (category, retryable, known_failed, what we say)
    "limit": ("capacity", True, True, "reported a limit"),
    "billing": ("unavailable", False, True, "reported a payment or plan stop"),
    "overloaded": ("provider", True, False, "reported overload"),
    "server": ("provider", True, False, "reported a server error"),
    "timeout": ("timeout", False, False, "did not finish in time"),
    "cut": ("provider", False, False, "ended before its answer was complete"),
    "auth": (
        "auth",
        False,
        True,
        "reported a login or permission problem; log in with it, or give it its key",
    ),
    "missing": ("unavailable", False, True, "could not be started"),
    "refused": ("unavailable", True, True, "could not be reached"),
    "invalid": ("invalid", False, True, "rejected the request as invalid"),
    "other": ("provider", False, False, "failed for a reason it did not classify"),
}
_INVALID_STATUSES = frozenset({400, 404, 405, 406, 411, 413, 414, 415, 422, 431})


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one native failure; leave out what is not. ``codes`` are machine words (error type,
    code, status name), ``message`` is prose, ``body`` the decoded JSON the waits may be nested in."""

    status: int | None = None
    codes: tuple[str, ...] = ()
    message: str = ""
    headers: Mapping[str, str] = {}
    body: object = None


def said_by(body: object, headers: Mapping[str, str], *, status: int | None = None) -> Said:
    """What an error object says, as OpenAI-compatible endpoints write it: ``{"error": {"code": …}}`` in all
    its shapes. Its own status counts where there is no other."""
    error = body
    if isinstance(error, list) and error:
        error = error[0]  # one vendor's compatible endpoint wraps its error in a list
    if isinstance(error, Mapping) and error.get("error"):
        error = error["error"]
    if not isinstance(error, Mapping):
        return Said(
            status=status, message=error if isinstance(error, str) else "", headers=headers, body=body
        )
    codes = [error.get(name) for name in ("code", "type", "status", "param")]
    number = next((int(str(code)) for code in codes if re.fullmatch(r"[45][0-9]{2}", str(code))), None)
    return Said(
        status=status or number,
        codes=tuple(code for code in codes if isinstance(code, str)),
        message=str(error.get("message") or error.get("detail") or ""),
        headers=headers,
        body=body,
    )


def failure(
    kind: Kind, who: str, *, detail: str = "", retry_after_s: int | None = None, accepted: bool = False
) -> Failure:
    """The table's row as a Failure. ``who`` and ``detail`` are ours (an adapter's id, a status), never
    provider text."""
    category, retryable, known, says = _TABLE[kind]
    wait = retry_after_s if retryable else None
    reason = f"{'billing: ' if kind == 'billing' else ''}{who} {says}"
    reason += f" ({detail})" if detail else ""
    reason += f"; stated wait {wait} s" if wait else ""
    return Failure(
        category=category,
        reason=reason,
        retryable=retryable,
        retry_after_s=wait,
        outcome="known_failed" if known else "unknown",
        overloaded=kind == "overloaded",
        accepted=accepted,
    )


def classify(said: Said, *, who: str, now: datetime, accepted: bool = False) -> Failure:
    """Always some category: what nothing fits is ``provider``, outcome ``unknown``."""
    kind = kind_of(said, now)
    detail = f"status {said.status}" if said.status is not None else ""
    wait = stated_wait(said, now) if kind in ("limit", "overloaded", "server", "refused") else None
    return failure(kind, who, detail=detail, retry_after_s=wait, accepted=accepted)


def stated_wait(said: Said, now: datetime) -> int | None:
    """The longest wait that was stated outright (header or field), else in words."""
    fields = (waits.from_headers(said.headers, now), waits.from_body(said.body, now))
    return waits.longest((*fields, waits.from_text(said.message, now)))


def kind_of(said: Said, now: datetime) -> Kind:
    """The row by code, then by status, then by wording."""
    codes = " ".join(said.codes).lower().replace("-", "_")
    text = said.message[:8_000].replace("\u2019", "'")
    if said.status is None and _OWN.search(text):
        return "other"
    coded = next((kind for kind, pattern in _CODES if pattern.search(codes)), None)
    if said.status is not None:
        return _by_status(said, coded, text, now)
    if coded:
        return coded
    return kind_of_text(text, now) or "other"


def kind_of_text(text: str, now: datetime) -> Kind | None:
    """The last resort: what a line of prose says. None where it says nothing of the table."""
    if _OWN.search(text):
        return None
    if (stated := _STATUS_IN_TEXT.search(text)) is not None:
        status = int(next(group for group in stated.groups() if group))
        return _by_status(Said(status=status, message=text), None, text, now)
    return next(
        (kind for kind, pattern in _WORDS if pattern.search(text) and not _exempt(kind, text, now)), None
    )


def _by_status(said: Said, coded: Kind | None, text: str, now: datetime) -> Kind:
    status = said.status or 0
    if status == 429:
        if coded in ("billing", "overloaded"):
            return coded
        worded = next((kind for kind, pattern in _WORDS[:2] if pattern.search(text)), None)
        if worded == "overloaded":
            return "overloaded"
        # "check your plan and billing" also ends the daily limits of some providers; those state a wait.
        return (
            "billing" if worded == "billing" and not stated_wait(said, now) and coded != "limit" else "limit"
        )
    if status == 402 or coded == "billing":
        return "billing"
    if status in (503, 529):
        return "overloaded"
    if 500 <= status < 600:
        return "overloaded" if coded == "overloaded" else "server"
    if status in (401, 403, 407):
        return "auth"
    if status == 408:
        return "timeout"
    if status in _INVALID_STATUSES:
        if coded in ("auth", "overloaded", "limit"):
            return coded
        return "billing" if _BILLING.search(text) else "auth" if _BAD_KEY.search(text) else "invalid"
    return coded or "other"


def _exempt(kind: Kind, text: str, now: datetime) -> bool:
    # A usage limit that offers to sell more is still one that resets at the time it states.
    return kind == "billing" and _LIMIT.search(text) is not None and waits.from_text(text, now) is not None


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(r"(?<![\w-])(?:" + "|".join(alternatives) + r")(?![\w-])", re.IGNORECASE)


_OWN = _words(
    r"is cooling down",
    r"all eligible adapters are at capacity",
    r"capacity recovery probe already running",
    r"no eligible dispatch adapter",
    r"stated a failure of category",
    *(re.escape(says) for _, _, _, says in _TABLE.values()),
)
_BILLING = _words(
    r"insufficient[ _](?:balance|quota|credits?|funds)",
    r"credit balance(?: is)? too low",
    r"payment required",
    r"billing (?:is )?(?:not enabled|not active|hard limit|disabled)",
    r"(?:your )?plan (?:and|&) billing",
    r"billing or payment",
    r"out of credits",
)
UNREACHED = _words(
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH",
    r"connection refused",
    r"network is unreachable",
    r"no route to host",
    r"failed to lookup address",
    r"name resolution",
)
"""That no connection came about: what the system says of it, and the runtimes that pass its words on."""
_BAD_KEY_WORDS = (r"(?:invalid|incorrect|missing|expired) (?:x-)?api[- _]key", r"api key not valid")
_BAD_KEY = _words(*_BAD_KEY_WORDS)
_OVERLOADED = _words(
    r"overloaded(?:_error)?",
    r"(?:model|server) is (?:currently )?at capacity",
    r"(?:currently )?experiencing high demand",
    r"no capacity available",
    r"server is (?:too )?busy",
)
_LIMIT = _words(
    r"rate[ -]limit(?:ed|s|ing)?(?: (?:reached|exceeded|hit))?",
    r"too many requests",
    r"(?:usage|request|token|session|daily|weekly|monthly|\d+-hour) limit (?:has been |was )?"
    r"(?:reached|hit|exceeded)",
    r"(?:hit|reached|exceeded) (?:your|the|its) (?:[\w-]+ ){0,3}(?:limit|quota)",
    r"exceed(?:s|ed)? your (?:[\w']+ ){0,2}(?:rate limit|quota)",
    r"(?<!disk )(?<!storage )(?<!file )(?<!inode )(?<!mailbox )quota (?:has been )?"
    r"(?:exceeded|exhausted|reached)",
    r"exhausted your (?:[\w-]+ ){0,2}(?:quota|capacity)",
    r"resource has been exhausted",
    r"(?:tokens|requests) per (?:minute|hour|day) (?:limit|exceeded)",
)
_WORDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("overloaded", _OVERLOADED),
    ("billing", _BILLING),
    ("limit", _LIMIT),
    (
        "auth",
        _words(
            r"not (?:logged|signed) in",
            r"please (?:run /?)?log ?in",
            r"authentication (?:failed|required|error)",
            r"unauthori[sz]ed",
            *_BAD_KEY_WORDS,
            r"(?:oauth )?token (?:has )?expired",
        ),
    ),
    ("refused", UNREACHED),
    ("timeout", _words(r"timed[ -]out", r"ETIMEDOUT", r"deadline exceeded")),
    (
        "invalid",
        _words(
            r"context[ _](?:length|window)",
            r"prompt is too long",
            r"(?:unknown|no such|invalid) model",
            r"model (?:\S+ )?(?:not found|does not exist)",
            r"invalid request",
        ),
    ),
    ("server", _words(r"internal server error", r"bad gateway", r"service unavailable")),
)
_CODES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "billing",
        _words(
            r"insufficient_quota",
            r"billing_\w+",
            r"payment_required",
            r"insufficient_\w*(?:balance|credits?)",
        ),
    ),
    ("overloaded", _words(r"overloaded(?:_error)?", r"server_is_overloaded", r"model_capacity_exhausted")),
    (
        "limit",
        _words(
            r"rate_limit\w*",
            r"usage_limit\w*",
            r"quota_exceeded",
            r"quota_exhausted",
            r"resource_exhausted",
            r"too_many_requests",
            r"throttl\w+",
        ),
    ),
    (
        "auth",
        _words(
            r"invalid_api_key",
            r"api_key_invalid",
            r"authentication_error",
            r"permission_(?:error|denied)",
            r"unauthenticated",
            r"unauthorized",
        ),
    ),
    (
        "invalid",
        _words(
            r"context_length_exceeded",
            r"model_not_found",
            r"invalid_\w+",
            r"unsupported_\w+",
            r"not_found\w*",
        ),
    ),
    ("server", _words(r"server_error", r"internal_error", r"api_error", r"internal")),
)
_PHRASES = {
    401: "unauthorized",
    402: "payment required",
    403: "forbidden",
    404: "not found",
    408: "request timeout",
    429: "too many requests",
    500: "internal server error",
    502: "bad gateway",
    503: "service unavailable",
    504: "gateway timeout",
}
# A number counts as a status only beside a word that says so, or its own reason phrase.
_STATUS_IN_TEXT = re.compile(
    r"\b(?:HTTP(?:/[0-9.]+)?|status(?: code)?|API error|request rejected)[ :=]*\(?"
    r"([45][0-9]{2})\b(?![.,]?[0-9])"
    + "".join(rf"|(?<![\w.-])({status})[ :-]+{phrase}\b" for status, phrase in _PHRASES.items()),
    re.IGNORECASE,
)
