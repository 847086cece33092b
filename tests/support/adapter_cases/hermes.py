"""How Hermes says each case of the contract: the error as its answer, and a report that it failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from support.replay import aimed, prints


def _fails(words: str) -> str:
    report = json.dumps({"completed": False, "failed": True, "api_calls": 1})
    return f"""#!/bin/sh
while [ "$1" != --usage-file ]; do shift; done
echo '{report}' > "$2"
echo '{words}'
"""


PROGRAMS = {
    "limit": _fails("HTTP 429: Slow down."),
    "limit with a wait": _fails("API call failed after 1 retries: HTTP 429: Please try again in 52s."),
    "usage limit with a reset": _fails("HTTP 429: Usage limit reached. It resets in 2 hours."),
    "billing": _fails("HTTP 402: Insufficient Balance"),
    "overloaded": _fails("HTTP 529: Overloaded"),
    "server error": _fails("HTTP 500: oops"),
    "auth": _fails("HTTP 401: Incorrect API key provided"),
    "invalid": _fails("HTTP 404: The model does not exist"),
    "timeout": "#!/bin/sh\nexec sleep 60\n",
    "unanticipated": prints(code=77),
    "no proof of success": prints("half an ans"),
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
    return await make(descriptor).dispatch(aimed(request, folder, "hermes", PROGRAMS[case]), lambda _: None)
