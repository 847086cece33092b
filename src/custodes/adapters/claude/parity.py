"""How Claude Code says each case of the contract, in its own events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from custodes.adapters.parity import SILENCE, Stage, prints

INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-sonnet-5"}
Events = list[dict[str, Any]]


def answers(stage: Stage) -> Events:
    usage = {"input_tokens": 11, "output_tokens": 5, "cache_read_input_tokens": 0}
    said = {"id": "m1", "model": "claude-sonnet-5", "content": [{"type": "text", "text": stage.answer}]}
    done = {"type": "result", "subtype": "success", "is_error": False, "result": stage.answer}
    if stage.request.schema is not None:
        done["structured_output"] = msgspec.json.decode(stage.answer)
    return [
        INIT,
        {"type": "assistant", "message": {**said, "usage": usage}},
        {**done, "usage": usage, "total_cost_usd": 0.01},
    ]


def fails(message: str, status: int | None = None, **more: Any) -> Events:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": message}
    return [INIT, {**result, "api_error_status": status, **more}]


def retries(delay_ms: int) -> Events:
    about = {"attempt": 1, "retry_delay_ms": delay_ms, "error_status": 429, "error": "rate_limit"}
    return [INIT, {"type": "system", "subtype": "api_retry", **about}]


def window(seconds: int) -> Events:
    info = {"status": "rejected", "resetsAt": int(time.time()) + seconds + 20}
    said = fails("You've hit your 5-hour limit", 429, api_error_type="rate_limit_error")
    return [{"type": "rate_limit_event", "rate_limit_info": info}, *said]


FAILURES: dict[str, Callable[[], Events]] = {
    "limit": lambda: fails("API Error: Request rejected (429)", 429, api_error_type="rate_limit_error"),
    "limit with a wait": lambda: retries(51_400),
    "usage limit with a reset": lambda: window(7200),
    "billing": lambda: fails("API Error: 402", 402, api_error_type="billing_error"),
    "overloaded": lambda: fails("API Error: 529 Overloaded", 529, api_error_type="overloaded_error"),
    "server error": lambda: fails("API Error: 500", 500, api_error_type="api_error"),
    "auth": lambda: fails("Not logged in · Please run /login", 401),
    "invalid": lambda: fails("There's an issue with the selected model", 404),
    "unanticipated": lambda: fails("API Error: something new"),
    "no proof of success": lambda: [INIT],
    "our own refusal": lambda: fails("all eligible adapters are at capacity"),
    "innocent words": lambda: fails("402913 tokens used at line 4031, port 5290"),
}


def asks(stage: Stage) -> str:
    """It asks over its output, and goes on with the answer in its input."""
    init, *rest = answers(stage)
    call = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": stage.wanted}}
    ask = {"type": "control_request", "request_id": "r1", "request": call}
    return prints(init, code=None) + stage.asks(ask, '"behavior":"allow"') + prints(*rest)


def script(case: str, stage: Stage) -> str:
    match case:
        case "timeout":
            return SILENCE
        case "success":
            return prints(*answers(stage))
        case "permission":
            return asks(stage)
    return prints(*FAILURES[case](), code=0 if case == "no proof of success" else 1)


def arrange(case: str, stage: Stage) -> Stage:
    return stage.program("claude", script(case, stage), stdin="line")
