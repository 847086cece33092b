"""How Gemini CLI says each case of the contract: a dump on standard error, an event, an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import aimed, prints

INIT = json.dumps({"type": "init", "session_id": "1", "model": "m1"})
SAID = json.dumps({"type": "message", "role": "assistant", "content": "half an ans", "delta": True})


def _dump(message: str, *fields: str, name: str = "_ApiError") -> str:
    lines = "".join(f"  {field},\n" for field in fields)
    return (
        f"Error when talking to Gemini API Full report available at: /r.json {name}: {message} {{\n{lines}}}"
    )


def _result(message: str) -> str:
    return json.dumps({"type": "result", "status": "error", "error": {"message": f"[API Error: {message}]"}})


PROGRAMS = {
    "limit": prints(INIT, _result("x"), error=_dump("x", "status: 429"), code=173),
    "limit with a wait": prints(INIT, error=_dump("Please retry in 52s.", "status: 429"), code=173),
    "usage limit with a reset": prints(
        INIT,
        error=_dump(
            "You have exhausted your daily quota on this model.",
            "message: 'Your quota will reset after 2h0m0s.'",
            "status: 429",
            name="TerminalQuotaError",
        ),
        code=173,
    ),
    "billing": prints(INIT, error=_dump("Billing is not enabled.", "status: 402"), code=146),
    "overloaded": prints(INIT, error=_dump("Overloaded", "status: 503"), code=247),
    "server error": prints(INIT, _result("oops"), code=244),
    "auth": prints(INIT, error=_dump("x", "status: 401"), code=145),
    "invalid": prints(INIT, error=_dump("m1 is not found", "code: 404", name="ModelNotFoundError"), code=1),
    "timeout": "#!/bin/sh\nexec sleep 60\n",
    "unanticipated": prints(code=77),
    "no proof of success": prints(INIT, SAID),
    "our own refusal": prints(INIT, _result("all eligible adapters are at capacity"), code=1),
    "innocent words": prints(INIT, _result("402913 tokens used at line 4031"), code=1),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    return await make(descriptor).dispatch(aimed(request, folder, "gemini", PROGRAMS[case]), lambda _: None)
