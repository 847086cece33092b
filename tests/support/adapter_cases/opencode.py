"""How OpenCode says each case of the contract: its error event, and its log before that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import aimed, prints


def _event(kind: str, **more: object) -> str:
    return json.dumps({"type": kind, "sessionID": "ses_1", **more})


def _refused(status: int | None, message: str, wait: str = "", **body: object) -> str:
    data = {
        "message": message,
        "statusCode": status,
        "responseHeaders": {"retry-after": wait} if wait else {},
        "responseBody": json.dumps({"error": body}),
    }
    return prints(_event("error", error={"name": "APIError", "data": data}), code=1)


PROGRAMS = {
    "limit": prints(
        error=(
            'timestamp=T level=ERROR run=1 message="stream error" session.id=ses_1 small=false '
            'error.error="AI_APICallError: Rate limit reached"'
        ),
        code=1,
    ),
    "limit with a wait": _refused(429, "x", "52"),
    "usage limit with a reset": _refused(429, "x", type="usage_limit_reached", resets_in_seconds=7200),
    "billing": _refused(402, "Insufficient Balance"),
    "overloaded": _refused(503, "x"),
    "server error": _refused(500, "oops"),
    "auth": _refused(401, "x"),
    "invalid": _refused(404, "The model does not exist", code="model_not_found"),
    "timeout": "#!/bin/sh\nexec sleep 60\n",
    "unanticipated": prints(code=77),
    "no proof of success": prints(_event("step_start"), _event("text", part={"text": "half an ans"})),
    "our own refusal": _refused(None, "all eligible adapters are at capacity"),
    "innocent words": _refused(None, "402913 tokens used at line 4031"),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    named = msgspec.structs.replace(request, model=f"provider/{request.model}")
    return await make(descriptor).dispatch(aimed(named, folder, "opencode", PROGRAMS[case]), lambda _: None)
