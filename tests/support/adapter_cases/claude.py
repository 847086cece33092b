"""How Claude Code says each case of the contract, in its own events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import request as aimed
from support.replay import stand_in

INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-sonnet-5"}


def fails(message: str, status: int | None = None, **more: Any) -> list[object]:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": message}
    return [INIT, {**result, "api_error_status": status, **more}]


def retries(delay_ms: int) -> list[object]:
    about = {"attempt": 1, "retry_delay_ms": delay_ms, "error_status": 429, "error": "rate_limit"}
    return [INIT, {"type": "system", "subtype": "api_retry", **about}]


def window(seconds: int) -> list[object]:
    info = {"status": "rejected", "resetsAt": int(time.time()) + seconds}
    said = fails("You've hit your 5-hour limit", 429, api_error_type="rate_limit_error")
    return [{"type": "rate_limit_event", "rate_limit_info": info}, *said]


EVENTS: dict[str, Callable[[], list[object]]] = {
    "limit": lambda: fails("API Error: Request rejected (429)", 429, api_error_type="rate_limit_error"),
    "limit with a wait": lambda: retries(51_400),
    "usage limit with a reset": lambda: window(7200),
    "billing": lambda: fails("API Error: 402", 402, api_error_type="billing_error"),
    "overloaded": lambda: fails("API Error: 529 Overloaded", 529, api_error_type="overloaded_error"),
    "server error": lambda: fails("API Error: 500", 500, api_error_type="api_error"),
    "auth": lambda: fails("Not logged in · Please run /login", 401),
    "invalid": lambda: fails("There's an issue with the selected model", 404),
    "timeout": lambda: [INIT],
    "unanticipated": lambda: fails("API Error: something new"),
    "no proof of success": lambda: [INIT],
    "our own refusal": lambda: fails("all eligible adapters are at capacity"),
    "innocent words": lambda: fails("402913 tokens used at line 4031, port 5290"),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    file = folder / "events"
    file.write_text("".join(json.dumps(event) + "\n" for event in EVENTS[case]()))
    then = {"timeout": "exec sleep 60", "no proof of success": "exit 0"}.get(case, "exit 1")
    here = stand_in(folder, "claude", f"#!/bin/sh\ncat '{file}'\n{then}\n")
    environment = aimed(here, folder).environment
    return await make(descriptor).dispatch(
        msgspec.structs.replace(request, environment=environment), lambda _: None
    )
