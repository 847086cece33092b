"""What one answer of a provider means. Pure.

======================================================  ===============  =====================================
answer                                                  verdict          why
======================================================  ===============  =====================================
an expected status, in time                             good
the same, later than ``slow_seconds``                   slow
the same, a usage API that says nothing is left, or     limited          the quota is spent, though this very
a spent rate-limit window of a minute or more                            request was let through
no answer within ``health_timeout``                     timeout
429                                                     limited          seed: switch
402, 403; 401 where a key was sent                      needs_person     seed: switch; no waiting mends it
5xx; no connection; a broken answer                     down
401 without a key, 404, 405, any other                  misconfigured    it is our question that is wrong:
status; a key, or a client, that cannot be had                           never an outage
an expected 2xx whose JSON is an error object           as its status    routers pass an upstream's failure on
                                                        or its words     so; one that says nothing known is
                                                                         misconfigured: neither well nor out
======================================================  ===============  =====================================

The last row is for ``models`` and ``completion``; of a ``health`` probe only the status counts (seed 003:
what is not 200 is an error; a 200 that says it is one is no "ok" either).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from custodes.adapters import failures, foreign, waits
from custodes.overseer.config import ProviderConfig

VerdictKind = Literal["good", "slow", "timeout", "limited", "needs_person", "down", "misconfigured"]
MODEL = re.compile(r"[A-Za-z0-9@][^\s\x00-\x1f\x7f]{0,199}")
"""A model's id, as far as one from outside may become a word of a command line: never an option."""
_STATUS_OF: dict[failures.Kind, int] = {
    "limit": 429,
    "billing": 402,
    "auth": 401,
    "overloaded": 503,
    "server": 500,
}
"""The status that an error is as good as, where it states none."""
WINDOW_S = 60
"""A spent rate-limit window that is over within these seconds is no limit worth a switch."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request, after ``seconds``. ``status`` is None where nothing did, and then ``trouble``
    says why. ``body`` is its JSON, bounded; ``left`` what the usage API says is left."""

    seconds: float
    status: int | None = None
    trouble: Literal["", "timeout", "refused", "broken", "key", "client"] = ""
    detail: str = ""
    headers: Mapping[str, str] = {}
    body: Any = None
    keyed: bool = False
    """Whether a key was sent."""
    left: float | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``code`` is the incident's error code: a status, or ``timeout``, ``refused``, ``slow``, ``quota``, ….
    ``wait`` is the provider's stated wait in whole seconds. ``absent`` are the watched models that it does
    not serve. ``detail`` is composed by us, for people."""

    kind: VerdictKind
    code: str = ""
    detail: str = ""
    wait: int | None = None
    seconds: float = 0.0
    served: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def judge(
    name: str,
    provider: ProviderConfig,
    answer: Answer,
    wall: float,
    models: Collection[str],
    others: Collection[str],
) -> Verdict:
    """
    :param wall: the answer's moment, in wall seconds since the epoch.
    :param models: the watched models of this provider.
    :param others: those of every provider that shares the probe, as ``provider/model``: a list that names
        none of them speaks of something else, and says nothing of a model that it lacks.
    """
    if answer.status is None:
        return _unanswered(answer)
    now = datetime.fromtimestamp(wall, UTC)
    status = answer.status
    if status in provider.expect:
        error = _error_of(answer) if provider.probe != "health" else None
        if error is None:
            return _answered(name, provider, answer, now, models, others)
        return _erred(error, answer, now)
    return _refused(status, answer, now)


def _refused(status: int, answer: Answer, now: datetime) -> Verdict:
    seconds, code = answer.seconds, str(status)
    if status == 429:
        wait = waits.longest((waits.from_headers(answer.headers, now), waits.from_body(answer.body, now)))
        return Verdict(kind="limited", code=code, detail="over its limit", wait=wait, seconds=seconds)
    if status in (402, 403) or (status == 401 and answer.keyed):
        what = {402: "it wants to be paid", 403: "it refuses this account", 401: "it refuses the key"}[status]
        return Verdict(kind="needs_person", code=code, detail=what, seconds=seconds)
    if status >= 500:
        return Verdict(kind="down", code=code, detail="it fails", seconds=seconds)
    what = (
        "it wants a key, and the probe has none" if status == 401 else "the probe's address is not one of its"
    )
    if status not in (401, 404, 405):
        what = "no status that the probe expects"
    return Verdict(kind="misconfigured", code=code, detail=what, seconds=seconds)


def _error_of(answer: Answer) -> failures.Said | None:
    """What the error object of a 2xx says; None where its body is none."""
    body = answer.body[0] if isinstance(answer.body, list) and len(answer.body) == 1 else answer.body
    error = foreign.mapping(body).get("error")
    if not (200 <= (answer.status or 0) < 300 and error and isinstance(error, Mapping | str)):
        return None
    return failures.said_by(answer.body, answer.headers)


def _erred(error: failures.Said, answer: Answer, now: datetime) -> Verdict:
    status = error.status or _STATUS_OF.get(failures.kind_of(error, now))
    said = f"in an answer with status {answer.status}"
    if status is None:
        return Verdict(kind="misconfigured", code="error", detail=f"an error {said}", seconds=answer.seconds)
    found = _refused(status, answer, now)
    return msgspec.structs.replace(found, detail=f"{found.detail}, {said}")


def _unanswered(answer: Answer) -> Verdict:
    if answer.trouble == "timeout":
        return Verdict(kind="timeout", code="timeout", detail="no answer in time", seconds=answer.seconds)
    if answer.trouble in ("key", "client"):
        return Verdict(
            kind="misconfigured", code=answer.trouble, detail=answer.detail, seconds=answer.seconds
        )
    what = "no connection" if answer.trouble == "refused" else "a broken answer"
    return Verdict(kind="down", code=answer.trouble or "broken", detail=what, seconds=answer.seconds)


def _answered(
    name: str,
    provider: ProviderConfig,
    answer: Answer,
    now: datetime,
    models: Collection[str],
    others: Collection[str],
) -> Verdict:
    spent = _spent_window(answer.headers, now)
    if answer.left is not None and answer.left <= 0:
        return Verdict(
            kind="limited", code="quota", detail="nothing of its quota is left", seconds=answer.seconds
        )
    if spent is not None:
        return Verdict(
            kind="limited",
            code="quota",
            detail="its rate-limit window is spent",
            wait=spent,
            seconds=answer.seconds,
        )
    served = _listed(answer.body) if provider.probe == "models" else ()
    spoken_of = any(other in served or other.partition("/")[2] in served for other in others)
    absent = tuple(m for m in models if spoken_of and m not in served and f"{name}/{m}" not in served)
    late = provider.slow_seconds is not None and answer.seconds > provider.slow_seconds
    if late:
        return Verdict(
            kind="slow", code="slow", detail=f"it took {answer.seconds:.1f} s", seconds=answer.seconds
        )
    return Verdict(kind="good", seconds=answer.seconds, served=served, absent=absent)


def _listed(body: Any) -> tuple[str, ...]:
    """The ids of an OpenAI-style list of models."""
    entries = foreign.mapping(body).get("data")
    if not isinstance(entries, list):
        return ()
    ids = (foreign.text(foreign.mapping(entry).get("id")) for entry in entries[:5_000])
    return tuple(each for each in ids if MODEL.fullmatch(each))


def _spent_window(headers: Mapping[str, str], now: datetime) -> int | None:
    """Seconds until the spent rate-limit windows are over; None where none is spent for long."""
    lower = {str(key).lower(): str(value).strip() for key, value in headers.items()}
    spent = {
        key: value
        for key, value in lower.items()
        if "ratelimit" in key and "reset" in key and lower.get(key.replace("reset", "remaining")) == "0"
    }
    spent |= {key.replace("reset", "remaining"): "0" for key in spent}
    wait = waits.from_headers(spent, now) if spent else None
    return wait if wait is not None and wait >= WINDOW_S else None
