"""How a program says each case of the contract: by its own statement, or by words and exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Model, Runtime


def _fails(words: str) -> str:
    return f"import sys; print({words!r}, file=sys.stderr); sys.exit(1)"


def _states(**failure: object) -> str:
    return f"print({json.dumps({'failure': failure})!r})"


PROGRAMS = {
    "limit": _fails("Error: 429 Too Many Requests"),
    "limit with a wait": _fails("rate limit reached, try again in 52s"),
    "usage limit with a reset": _states(category="capacity", retry_after_s=7200),
    "billing": _fails("Your credit balance is too low"),
    "overloaded": _states(category="provider", overloaded=True),
    "server error": _fails("HTTP 500 Internal Server Error"),
    "auth": _fails("Not logged in. Please run /login"),
    "invalid": _states(category="invalid"),
    "timeout": "import time; time.sleep(60)",
    "unanticipated": "raise SystemExit(77)",
    "no proof of success": "pass",
    "our own refusal": _fails("all eligible adapters are at capacity"),
    "innocent words": _fails("402913 tokens used at line 4031"),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    program = Model(id=request.model or "", argv=(sys.executable, "-c", PROGRAMS[case]))
    here = msgspec.structs.replace(descriptor, models=(program,))
    return await make(here).dispatch(request, lambda _: None)
