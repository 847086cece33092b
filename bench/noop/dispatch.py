"""The runtime that returns at once, or once it is let go."""

from __future__ import annotations

import anyio

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, DispatchResult, Progress, ProgressSink, Usage

RESULT = DispatchResult(
    structured={"summary": "nothing to do"}, usage=Usage(input_tokens=100, output_tokens=10)
)


class NoOp:
    def __init__(self) -> None:
        self.held: anyio.Event | None = None
        """Set it to keep every child alive until the event is set."""

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:  # noqa: ARG002 - nothing to do
        progress(Progress(kind="output", chars=1))
        if self.held is not None:
            await self.held.wait()
        return RESULT


def runtime(descriptor: Descriptor) -> NoOp:  # noqa: ARG001 - it needs none of it
    return NoOp()
