"""How an OpenAI-compatible endpoint says each case of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from custodes.adapters.descriptor import Endpoint
from custodes.adapters.parity import Stage
from custodes.adapters.parity.endpoint import Reply, endpoint, events, whole


def error(status: int, message: str, kind: str = "", **more: object) -> Reply:
    return whole(status, {"error": {"message": message, "type": kind, "code": kind, **more}})


def chunk(text: str, finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 11, "completion_tokens": 5}
    return {"id": "c1", "model": "m1", "choices": [choice], "usage": usage if finish else None}


def in_stream(message: str, **more: object) -> Reply:
    return events({"error": {"message": message, **more}})


FAILURES = {
    "limit with a wait": error(429, "Please try again in 52s."),
    "usage limit with a reset": error(429, "x", "usage_limit_reached", resets_in_seconds=7200),
    "billing": error(429, "You exceeded your current quota", "insufficient_quota"),
    "overloaded": error(503, "The server is overloaded"),
    "server error": error(500, "oops"),
    "auth": error(401, "Incorrect API key provided"),
    "invalid": error(404, "The model does not exist", "model_not_found"),
    "timeout": Reply(body=None),
    "unanticipated": Reply(status=418, body=b"?"),
    "no proof of success": events(chunk("half an ans")),
    "our own refusal": in_stream("all eligible adapters are at capacity"),
    "innocent words": in_stream("402913 tokens used at line 4031"),
}
LIMITED = "Rate limit reached for requests"


def reply(case: str, stage: Stage) -> Reply:
    if case == "success":
        middle = len(stage.answer) // 2
        return events(chunk(stage.answer[:middle]), chunk(stage.answer[middle:], "stop"), "[DONE]")
    if case == "limit":  # a refusal is short; what comes in a flood comes in a stream
        return in_stream(LIMITED, code="rate_limit_exceeded") if any(stage.noise) else error(429, LIMITED)
    return FAILURES[case]


@contextmanager
def arrange(case: str, stage: Stage) -> Iterator[Stage]:
    with endpoint(stage, reply(case, stage)) as url:
        yield stage.described(endpoint=Endpoint(base_url=f"{url}/v1"))
