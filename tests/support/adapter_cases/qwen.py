"""How Qwen Code says each case of the contract: its result event, and its debug log before that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import aimed, prints


def _result(message: str) -> str:
    error = {"message": f"[API Error: {message}]"}
    return json.dumps(
        {"type": "result", "subtype": "error_during_execution", "is_error": True, "error": error}
    )


def _attempt(delay_ms: int) -> str:
    head = "T [WARN] [RETRY] Attempt 1 failed with status 429. Retrying after explicit delay of"
    return f"{head} {delay_ms}ms... {{\n  statusCode: 429,\n}} Error: x"


PROGRAMS = {
    "limit": prints(_result("429 Too many requests"), code=1),
    "limit with a wait": prints(error=_attempt(52_000), code=1),
    "usage limit with a reset": prints(_result("429 usage limit reached, try again in 2h"), code=1),
    "billing": prints(_result("402 Insufficient Balance"), code=1),
    "overloaded": prints(_result("503 The server is overloaded"), code=1),
    "server error": prints(_result("500 oops"), code=1),
    "auth": prints(_result("401 Incorrect API key provided"), code=1),
    "invalid": prints(_result("404 The model `m1` does not exist"), code=1),
    "timeout": "#!/bin/sh\nexec sleep 60\n",
    "unanticipated": prints(code=77),
    "no proof of success": prints(
        json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "half an ans"}]}})
    ),
    "our own refusal": prints(_result("all eligible adapters are at capacity"), code=1),
    "innocent words": prints(_result("402913 tokens used at line 4031"), code=1),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    return await make(descriptor).dispatch(aimed(request, folder, "qwen", PROGRAMS[case]), lambda _: None)
