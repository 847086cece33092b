from __future__ import annotations

from typing import Any

import pytest

from custodes.overseer.config import ProviderConfig
from custodes.overseer.probe import Answer, judge
from support.overseer import MIDNIGHT

PROVIDER = ProviderConfig(health_url="http://127.0.0.1:1/v1/models", slow_seconds=5)


def judged(provider: ProviderConfig = PROVIDER, **answer: Any) -> Any:
    said = Answer(**{"seconds": 0.1, **answer})
    return judge("p", provider, said, MIDNIGHT, ("m", "n"), ("p/m", "p/n", "q/o"))


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ({"status": 200}, "good", ""),
        ({"status": 200, "seconds": 5.1}, "slow", "slow"),
        ({"trouble": "timeout"}, "timeout", "timeout"),
        ({"status": 429}, "limited", "429"),
        ({"status": 402}, "needs_person", "402"),
        ({"status": 403}, "needs_person", "403"),
        ({"status": 401, "keyed": True}, "needs_person", "401"),
        ({"status": 401}, "misconfigured", "401"),
        ({"status": 404}, "misconfigured", "404"),
        ({"status": 405}, "misconfigured", "405"),
        ({"status": 301}, "misconfigured", "301"),
        ({"status": 204}, "misconfigured", "204"),
        ({"status": 500}, "down", "500"),
        ({"status": 503}, "down", "503"),
        ({"trouble": "refused"}, "down", "refused"),
        ({"trouble": "broken"}, "down", "broken"),
        ({"trouble": "key", "detail": "A_KEY is not set"}, "misconfigured", "key"),
        ({"status": 200, "left": 0.0}, "limited", "quota"),
        ({"status": 200, "left": 0.01}, "good", ""),
    ],
)
def test_each_answer_has_its_verdict(answer: dict[str, Any], kind: str, code: str) -> None:
    found = judged(**answer)
    assert (found.kind, found.code) == (kind, code)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"code": 429, "message": "slow down"}, "limited", "429"),
        ({"code": "402"}, "needs_person", "402"),
        ({"type": "rate_limit_exceeded"}, "limited", "429"),
        ({"type": "insufficient_quota"}, "needs_person", "402"),
        ({"message": "the server is overloaded"}, "down", "503"),
        ({"code": 502}, "down", "502"),
        ({"code": 401}, "misconfigured", "401"),
        ({"code": 418}, "misconfigured", "418"),
        ({"message": "an odd thing happened"}, "misconfigured", "error"),
        ("an odd thing happened", "misconfigured", "error"),
        ("", "good", ""),
        (None, "good", ""),
        (7, "good", ""),
    ],
)
def test_an_error_in_a_good_status_is_what_it_says_and_never_good(error: Any, kind: str, code: str) -> None:
    found = judged(status=200, body={"error": error})
    assert (found.kind, found.code) == (kind, code)
    health = ProviderConfig(health_url="http://127.0.0.1:1/health", probe="health")
    assert judged(health, status=200, body={"error": error}).kind == "good", "its status is all that counts"


def test_an_error_in_a_good_status_comes_with_its_wait_and_says_where_it_stood() -> None:
    found = judged(status=200, body=[{"error": {"code": 429, "retry_after": 90}}])
    assert (found.kind, found.wait) == ("limited", 90)
    assert found.detail == "over its limit, in an answer with status 200"


def test_other_statuses_are_good_where_they_are_expected() -> None:
    odd = ProviderConfig(health_url="http://127.0.0.1:1", expect=(204, 401))
    assert [judged(odd, status=status).kind for status in (204, 401, 200)] == [
        "good",
        "good",
        "misconfigured",
    ]


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"Retry-After": "52"}, None, 52),
        ({"retry-after": "Mon, 20 Jul 2026 00:10:00 GMT"}, None, 600),
        ({}, {"error": {"retry_after": 90}}, 90),
        ({}, {"error": "no word of it"}, None),
    ],
)
def test_a_limit_comes_with_the_wait_that_is_stated(
    headers: dict[str, str], body: Any, wait: int | None
) -> None:
    assert judged(status=429, headers=headers, body=body).wait == wait


def test_a_window_that_is_spent_for_long_is_a_limit_though_the_answer_was_good() -> None:
    spent = {"X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "2h"}
    assert (judged(status=200, headers=spent).kind, judged(status=200, headers=spent).wait) == (
        "limited",
        7_200,
    )
    soon = {**spent, "X-RateLimit-Reset-Requests": "2s"}
    some = {**spent, "X-RateLimit-Remaining-Requests": "7"}
    assert [judged(status=200, headers=each).kind for each in (soon, some)] == ["good", "good"]


def test_a_list_names_what_is_served_and_what_is_not() -> None:
    listed = {"data": [{"id": "p/m"}, {"id": "q/o"}, {"id": 7}, "odd", {"id": "--help"}, {"id": "a b"}]}
    found = judged(status=200, body=listed)
    assert (found.served, found.absent) == (("p/m", "q/o"), ("n",))


@pytest.mark.parametrize("body", [None, [], {"data": {}}, {"data": [{"id": "something-else"}]}])
def test_a_list_that_names_no_watched_model_says_nothing_of_any(body: Any) -> None:
    assert judged(status=200, body=body).absent == ()
