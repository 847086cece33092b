"""The seven steps from a request to a route, pure; every field carries the step it came from."""

from __future__ import annotations

from typing import Literal

import msgspec

Step = Literal["request", "role", "orchestrator", "preset", "role_default", "history", "adapter_default"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where one attempt goes. ``provenance`` maps adapter, model, effort and timeout to the step each came from."""

    role: str
    adapter: str
    model: str | None
    effort: str | None
    timeout_s: float
    pool: str
    provenance: dict[str, Step] = {}
