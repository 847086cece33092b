"""One small question to a runtime, for real: whether its adapter works here, from end to end.

It goes past policy and breaker, and changes no health: an operator asks just because those refuse. It costs
a few tokens.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from custodes.adapters.port import DispatchRequest, Failure, Progress, Usage
from custodes.adapters.registry import Registry
from custodes.supervision.dispatching.attempt import evidence_of
from custodes.supervision.dispatching.prompt import prompt_for
from custodes.supervision.dispatching.runtime_call import call_runtime
from custodes.supervision.evidence import schema_for
from custodes.supervision.record.ids import new_id

QUESTION = (
    "This is a check of the connection. Use no tool and read no file; say in the summary that you are ready."
)
TIMEOUT_S = 120.0


class LiveCheck(msgspec.Struct, frozen=True, kw_only=True):
    """``failure`` is None where the runtime answered with evidence; ``seconds`` is how long that took."""

    seconds: float
    summary: str = ""
    failure: Failure | None = None
    served_model: str | None = None
    usage: Usage | None = None


async def live_check(registry: Registry, adapter: str, project: Path) -> LiveCheck:
    """Ask it. Cancelled, everything it started is ended first.

    :raises AdapterError: there is no adapter of this id.
    """
    descriptor = registry.descriptor(adapter)
    request = DispatchRequest(
        run_id=new_id(),
        role="observer",
        prompt=prompt_for("observer", QUESTION, descriptor),
        mutable=False,
        cwd=str(project),
        timeout_s=TIMEOUT_S,
        model=descriptor.default_model if descriptor.can("model_selection") else None,
        schema=schema_for("observer") if descriptor.can("structured_output") else None,
    )
    begun = time.monotonic()
    result = await call_runtime(registry, request, adapter, _ignore)
    evidence, failure = evidence_of("observer", result, accepted=False)
    return LiveCheck(
        seconds=round(time.monotonic() - begun, 3),
        summary=evidence.summary if evidence is not None else "",
        failure=failure,
        served_model=result.served_model,
        usage=result.usage,
    )


def _ignore(progress: Progress) -> None:
    """Nobody watches a check."""
