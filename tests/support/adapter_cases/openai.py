"""How the openai adapter's endpoint says each case of the contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from custodes.adapters import Descriptor, DispatchRequest, DispatchResult, Runtime
from custodes.adapters.descriptor import Endpoint
from support import provider as serve

REPLIES = {
    "limit": serve.error(429, "Rate limit reached for requests"),
    "limit with a wait": serve.error(429, "Please try again in 52s."),
    "usage limit with a reset": serve.error(429, "x", "usage_limit_reached", resets_in_seconds=7200),
    "billing": serve.error(429, "You exceeded your current quota", "insufficient_quota"),
    "overloaded": serve.error(503, "The server is overloaded"),
    "server error": serve.error(500, "oops"),
    "auth": serve.error(401, "Incorrect API key provided"),
    "invalid": serve.error(404, "The model does not exist", "model_not_found"),
    "timeout": serve.silence(),
    "unanticipated": serve.status(418, b"?"),
    "no proof of success": serve.stream(serve.delta("half an ans")),
    "our own refusal": serve.stream(
        serve.event({"error": {"message": "all eligible adapters are at capacity"}})
    ),
    "innocent words": serve.stream(serve.event({"error": {"message": "402913 tokens used at line 4031"}})),
}


async def provoke(
    case: str,
    descriptor: Descriptor,
    make: Callable[[Descriptor], Runtime],
    request: DispatchRequest,
    folder: Path,
) -> DispatchResult:
    with serve.provider(REPLIES[case]) as running:
        here = msgspec.structs.replace(descriptor, endpoint=Endpoint(base_url=running.url))
        return await make(here).dispatch(request, lambda _: None)
