"""How Codex says each case of the contract, in its own events and the line of its log."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import request as aimed
from support.replay import stand_in

LIMITED = "exceeded retry limit, last status: 429 Too Many Requests"
LOG = (
    "WARN codex_core::responses_retry: stream disconnected - retrying sampling request (1/5 in 51.4s)... "
    f"sampling_error={LIMITED}"
)
NOW = datetime.now().astimezone().replace(second=0, microsecond=0)
RESET = (NOW + timedelta(seconds=7200)).strftime("%I:%M %p").lstrip("0")
MESSAGES = {
    "limit": LIMITED,
    "limit with a wait": f"Reconnecting... 1/5 ({LIMITED})",
    "usage limit with a reset": f"You\u2019ve hit your usage limit. Upgrade to Pro or try again at {RESET}.",
    "billing": "unexpected status 402 Payment Required: Insufficient Balance, url: https://api.example/v1",
    "overloaded": "Selected model is at capacity. Please try a different model.",
    "server error": "We\u2019re currently experiencing high demand, which may cause temporary errors.",
    "auth": "unexpected status 401 Unauthorized: Incorrect API key, url: https://api.example/v1",
    "invalid": "The model `m1` does not exist or you do not have access to it.",
    "unanticipated": "something new went wrong",
    "our own refusal": "all eligible adapters are at capacity",
    "innocent words": "402913 tokens used at line 4031, port 5290",
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    events: list[object] = [{"type": "thread.started", "thread_id": "t1"}, {"type": "turn.started"}]
    if case in MESSAGES:
        events.append({"type": "error", "message": MESSAGES[case]})
    file = folder / "events"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    log = f"echo '{LOG}' >&2\n" if case == "limit with a wait" else ""
    then = {"timeout": "exec sleep 60", "no proof of success": "exit 0"}.get(case, "exit 1")
    here = stand_in(folder, "codex", f"#!/bin/sh\n{log}cat '{file}'\n{then}\n")
    environment = aimed(here, folder).environment
    # The clock the reset above was written by: codex's own clock times go to the minute only.
    runtime = type(make(descriptor))(descriptor, lambda: NOW)  # type: ignore[call-arg]  # CodexRuntime's own
    return await runtime.dispatch(msgspec.structs.replace(request, environment=environment), lambda _: None)
