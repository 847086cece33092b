"""A runtime that does what its test says: a real adapter of a project, with its own folder, trusted.

Each pool has a queue of acts; an act is a callable that gets the request and the progress sink, and
returns a result. Without one, the runtime answers at once with the evidence ``{"summary": prompt}``.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, Progress, ProgressSink, Usage
from custodes.adapters.trust import trust

Act = Callable[[DispatchRequest, ProgressSink], Awaitable[DispatchResult]]

ADAPTER_YAML = """\
version: 1
id: {id}
runtime_entrypoints:
  dispatch: dispatch.py
  capabilities: [dispatch, model_selection, effort_selection, structured_output]
models:
  - {{id: large, bucket: large, default: true}}
  - {{id: small, bucket: small}}
efforts: [low, high]
default_effort: low
dispatch_timeout_s: 60
"""


@dataclass
class Script:
    """What every scripted adapter of one test does, and what was asked of it."""

    acts: deque[Act] = field(default_factory=deque)
    requests: list[DispatchRequest] = field(default_factory=list)


SCRIPTS: dict[str, Script] = {}
"""By the project's folder: the dispatch module finds its test's script there."""


def install(project: Path, *ids: str, adapter_yaml: str = ADAPTER_YAML) -> Script:
    """Write the adapters into the project, trust them, make them eligible, and enable supervision."""
    for adapter in ids:
        folder = project / ".coding-os" / "adapters" / adapter
        folder.mkdir(parents=True)
        (folder / "adapter.yaml").write_text(adapter_yaml.format(id=adapter))
        (folder / "dispatch.py").write_text("from support.scripted import runtime as runtime\n")
        trust(folder)
    (project / ".coding-os.yaml").write_text(f"agents: [{', '.join(ids)}]\n")
    configure(project)
    SCRIPTS[str(project)] = script = Script()
    return script


def configure(project: Path, **policy: object) -> None:
    """Write ``model_routing`` with supervision enabled and these keys."""
    settings = {"model_routing": {"enabled": True, **policy}}
    (project / ".coding-os" / "hub-settings.json").write_text(json.dumps(settings, indent=2))


class ScriptedRuntime:
    def __init__(self, script: Script) -> None:
        self._script = script

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        self._script.requests.append(request)
        if self._script.acts:
            return await self._script.acts.popleft()(request, progress)
        return await answer(request, progress)


def runtime(descriptor: Descriptor) -> ScriptedRuntime:
    project = Path(descriptor.folder).parents[2]
    return ScriptedRuntime(SCRIPTS[str(project)])


async def answer(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
    progress(Progress(kind="output", chars=1))
    return DispatchResult(text=json.dumps({"summary": request.prompt}))


class Hang:
    """An act that begins, and ends with its cancel alone."""

    def __init__(self) -> None:
        self.begun = anyio.Event()

    async def __call__(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        self.begun.set()
        await anyio.sleep_forever()
        raise AssertionError


def begun(act: Act = answer) -> Act:
    """As a native program does it: it says that it has started, before anything else."""

    async def started(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        progress(Progress(kind="started", pid=os.getpid()))
        return await act(request, progress)

    return started


def fail(failure: Failure) -> Act:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return DispatchResult(failure=failure)

    return act


def using(*told: Usage, usage: Usage | None = None) -> Act:
    """Answer, having told of what was used so far; ``usage`` is what the result says of it at the end."""

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        for used in told:
            progress(Progress(kind="usage", usage=used))
            await anyio.lowlevel.checkpoint()
        return msgspec.structs.replace(await answer(request, progress), usage=usage)

    return act


def limit(retry_after_s: int | None = None) -> Act:
    return fail(
        Failure(
            category="capacity",
            retryable=True,
            retry_after_s=retry_after_s,
            outcome="known_failed",
            reason="rate limit",
        )
    )
