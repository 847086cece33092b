"""One turn of an agent that speaks the Agent Client Protocol over its standard input and output."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

import anyio.to_thread
import msgspec

from custodes.adapters import failures, native, waits
from custodes.adapters.acp import agents
from custodes.adapters.acp.session import Session
from custodes.adapters.asks import Asks
from custodes.adapters.descriptor import Descriptor, Model
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.process import ProcessResult, base_environment
from custodes.extras import missing

_ABSENT = missing("it needs", "acp")


class AcpRuntime:
    def __init__(self, descriptor: Descriptor) -> None:
        self._descriptor = descriptor

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        name = request.model or self._descriptor.default_model
        program = self._descriptor.model(name) if name else None
        if wrong := self._refusal(request, name, program):
            return DispatchResult(failure=failures.failure("invalid", self._descriptor.id, detail=wrong))
        try:
            # A second to import, most of it pydantic's: hence in a thread, and only here.
            acp = await anyio.to_thread.run_sync(importlib.import_module, "acp.schema")
        except ImportError:
            return DispatchResult(failure=failures.failure("missing", self._descriptor.id, detail=_ABSENT))
        assert program is not None  # noqa: S101 - _refusal names every other case
        return await self._run(request, program, acp, progress)

    def _refusal(self, request: DispatchRequest, name: str | None, program: Model | None) -> str:
        if program is None or not program.argv:
            known = ", ".join(each.id for each in self._descriptor.models if each.argv) or "none"
            return f"'{name}' is not one of its agents; declared: {known}"
        return native.refusal(self._descriptor, request, None)

    async def _run(
        self, request: DispatchRequest, program: Model, acp: ModuleType, progress: ProgressSink
    ) -> DispatchResult:
        who = f"{self._descriptor.id} agent '{program.id}'"
        agent = agents.known(program.argv)
        asks = Asks(request.permit)
        session = Session(acp, who, _absolute(request), agent, progress, asks)
        session.begin()
        inherited = agents.environment(agent, os.environ)
        failure = await native.attempt(
            who,
            program.argv,
            request=request,
            environment=base_environment(
                {**inherited, **request.environment}, self._descriptor.readiness.env
            ),
            stdin=session.stdin,
            reader=session,
            verdict=lambda ended: verdict(ended, session, who),
            progress=progress,
            asks=asks,
            on_end=session.part,
        )
        return DispatchResult(
            text="" if failure else session.text,
            failure=failure,
            usage=session.usage,
            native_thread_id=session.id or None,
            served_model=program.id if failure is None else None,
        )


def _absolute(request: DispatchRequest) -> DispatchRequest:
    return msgspec.structs.replace(request, cwd=str(Path(request.cwd).absolute()))


def verdict(ended: ProcessResult, session: Session, who: str) -> Failure | None:
    """None where its turn ended as done. Its end by our hand right after that is no failure."""
    if session.failure is not None or session.done:
        return session.failure
    if session.initialized:
        return failures.failure("cut", who, detail=ended.ending)
    said = failures.Said(message=session.words)
    kind = failures.kind_of(said, waits.now()) if session.words.strip() else "other"
    return failures.failure(kind, who, detail=f"{ended.ending}, before it spoke the protocol")


def runtime(descriptor: Descriptor) -> AcpRuntime:
    return AcpRuntime(descriptor)
