"""What an agent's failed turn says: a JSON-RPC error, or the words of a turn that only looks done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from custodes.adapters import failures, foreign
from custodes.adapters.port import Failure, Usage

AUTH_REQUIRED = -32000
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_KINDS = {"authentication_failed": "authentication_error", "unknown": "", "server_error": ""}
"""One agent's own words for an error, as the shared table knows them; the vague ones say nothing."""
_UNKNOWN_MODEL = re.compile(
    r"\bmodels?\b[\w/ .`'-]{0,80} (?:is not found|may not exist)|issue with the selected model"
)
_UNREACHED = re.compile(
    rf"{failures.UNREACHED.pattern}|connection failed|fetch failed|unable to connect", re.IGNORECASE
)
_CUT = re.compile(r"\bterminated\b|socket|incomplete json|stream disconnected|ECONNRESET", re.IGNORECASE)
_ERROR_TEXT = re.compile(r"(?:API call failed|API Error|HTTP [45][0-9]{2}\b)")
_SHORT = 1_000
"""Characters. A longer answer is one, however it begins."""


def failed(error: Mapping[str, Any], who: str, now: datetime) -> Failure:
    """A JSON-RPC error: its code where that is a provider's status, then its data, then its words."""
    code = error.get("code")
    data = foreign.mapping(error.get("data"))
    message = foreign.text(data.get("message")) or foreign.text(data.get("details"))
    message = message or foreign.text(error.get("message")).removeprefix("Internal error: ")
    kinds = (foreign.text(data.get("errorKind")), foreign.text(data.get("codexErrorInfo")))
    codes = tuple(_KINDS.get(kind, _CAMEL.sub("_", kind).lower()) for kind in kinds)
    if code == AUTH_REQUIRED:
        return failures.failure("auth", who, detail="it asks for a login")
    status = foreign.status(code)
    return _said(status if status and status >= 400 else _http_status(data), codes, message, who, now)


def worded(text: str, who: str, now: datetime) -> Failure:
    """A turn that ended well in form, whose only answer is the error."""
    return _said(None, (), text[:8_000], who, now)


def retried(update: Mapping[str, Any], who: str, now: datetime) -> Failure | None:
    """What Codex is about to try again after, told in the session's ``_meta``; None where it is not that."""
    error = foreign.mapping(foreign.mapping(foreign.mapping(update.get("_meta")).get("codex")).get("error"))
    if error.get("willRetry") is not True:
        return None
    message = foreign.text(error.get("additionalDetails")) or foreign.text(error.get("message"))
    return _said(_http_status(error), (), message, who, now)


def _said(status: int | None, codes: tuple[str, ...], message: str, who: str, now: datetime) -> Failure:
    body = foreign.decode(message) if message.lstrip().startswith("{") else None
    inner = foreign.mapping(foreign.mapping(body).get("error"))
    message = foreign.text(inner.get("message")) or message
    codes = (*codes, foreign.text(inner.get("status")))
    if status in (None, 500) and _UNKNOWN_MODEL.search(message):
        return failures.failure("invalid", who, detail="it does not know the model")
    if status in (None, 500) and _UNREACHED.search(message):
        return failures.failure("refused", who)
    if failures.kind_of_text(message, now) == "billing" and "usage_limit_exceeded" in codes:
        codes = ()  # Codex calls a spent credit so too
    said = failures.Said(status=status, codes=codes, message=message, body=body)
    found = failures.classify(said, who=who, now=now)
    # Gemini CLI gives 500 to whatever has no status of its own.
    if status in (None, 500) and failures.kind_of(said, now) in ("other", "server") and _CUT.search(message):
        return failures.failure("cut", who)
    return found


def _http_status(data: Mapping[str, Any]) -> int | None:
    """The status in Codex's ``{"codexErrorInfo": {"…": {"httpStatusCode": 429}}}``."""
    for inner in foreign.mapping(data.get("codexErrorInfo")).values():
        if (status := foreign.status(foreign.mapping(inner).get("httpStatusCode"))) is not None:
            return status
    return None


def is_error_text(text: str) -> bool:
    """Whether an answer is how an agent words a provider's failure."""
    return len(text) < _SHORT and _ERROR_TEXT.match(text) is not None


def usage_of(said: Mapping[str, Any]) -> Usage | None:
    """The tokens in a result or an update, in the protocol's place or in ``_meta``; None where none stand."""
    meta = foreign.mapping(said.get("_meta"))
    quota = foreign.mapping(foreign.mapping(meta.get("quota")).get("token_count"))
    for place in (foreign.mapping(said.get("usage")), foreign.mapping(meta.get("usage")), quota):
        tokens = {_CAMEL.sub("_", name).lower(): value for name, value in place.items()}
        found = Usage(
            input_tokens=foreign.count(tokens.get("input_tokens")),
            output_tokens=foreign.count(tokens.get("output_tokens")),
            cached_input_tokens=foreign.count(tokens.get("cached_read_tokens")),
        )
        if found.input_tokens is not None or found.output_tokens is not None:
            return found
    return None


def reports_no_usage(said: Mapping[str, Any]) -> bool:
    """Whether a result says outright that nothing was used: a turn that did not reach its model."""
    if "usage" in said and said["usage"] is None:
        return True
    used = usage_of(said)
    return used is not None and not used.input_tokens and not used.output_tokens
