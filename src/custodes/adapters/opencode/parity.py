"""How OpenCode says each case of the contract: its error event, and its log before that."""

from __future__ import annotations

import json

from custodes.adapters.parity import SILENCE, Stage, prints


def event(kind: str, **more: object) -> dict[str, object]:
    return {"type": kind, "sessionID": "ses_1", **more}


def refused(status: int | None, message: str, wait: str = "", **body: object) -> str:
    data = {
        "message": message,
        "statusCode": status,
        "responseHeaders": {"retry-after": wait} if wait else {},
        "responseBody": json.dumps({"error": body}),
    }
    return prints(event("error", error={"name": "APIError", "data": data}), code=1)


FAILURES = {
    "limit": prints(
        error=(
            'timestamp=T level=ERROR run=1 message="stream error" session.id=ses_1 small=false '
            'error.error="AI_APICallError: Rate limit reached"'
        ),
        code=1,
    ),
    "limit with a wait": refused(429, "x", "52"),
    "usage limit with a reset": refused(429, "x", type="usage_limit_reached", resets_in_seconds=7200),
    "billing": refused(402, "Insufficient Balance"),
    "overloaded": refused(503, "x"),
    "server error": refused(500, "oops"),
    "auth": refused(401, "x"),
    "invalid": refused(404, "The model does not exist", code="model_not_found"),
    "timeout": SILENCE,
    "unanticipated": "exit 77",
    "no proof of success": prints(event("step_start"), event("text", part={"text": "half an ans"})),
    "our own refusal": refused(None, "all eligible adapters are at capacity"),
    "innocent words": refused(None, "402913 tokens used at line 4031"),
}


def arrange(case: str, stage: Stage) -> Stage:
    stage = stage.asking(model=f"provider/{stage.request.model}")
    if case != "success":
        return stage.program("opencode", FAILURES[case])
    done = {"reason": "stop", "cost": 0.01, "tokens": {"input": 11, "output": 5}}
    said = event("text", part={"text": stage.answer})
    return stage.program("opencode", prints(event("step_start"), said, event("step_finish", part=done)))
