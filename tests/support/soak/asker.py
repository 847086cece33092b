"""The soak's second adapter, in its host: it asks for leave, and does the deed where it gets it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import (
    DispatchRequest,
    DispatchResult,
    Failure,
    PermissionAsk,
    Progress,
    ProgressSink,
)
from support.soak.program import Journal, Writer, deed_in

ADAPTER_YAML = """\
version: 1
id: asker
runtime_entrypoints:
  dispatch: dispatch.py
  capabilities: [dispatch, model_selection, effort_selection, structured_output, permission_requests]
models:
  - {id: one, bucket: one, default: true}
efforts: [low, high]
default_effort: low
dispatch_timeout_s: 10
"""
DENIED = Failure(
    category="invalid", reason="leave was denied", retryable=False, outcome="known_failed", accepted=False
)
FOLDER = "CUSTODES_SOAK"
"""The variable with the soak's folder, in the environment of every surface."""


class Asker:
    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        deed = deed_in(request.prompt)
        journal = Journal(Path(os.environ[FOLDER]) / "journal")
        progress(Progress(kind="started", pid=os.getpid()))
        if request.permit is not None:
            answer = await request.permit(PermissionAsk(tool="shell", detail=f"deed {deed['key']}"))
            if answer == "deny":
                return DispatchResult(failure=DENIED)
        journal.tell("begun", deed)
        writer = Writer(journal, deed)
        writer.take()
        try:
            if deed["leaves"]:
                journal.tell("effect", deed)
            progress(Progress(kind="output", chars=1))
            await anyio.sleep(deed["seconds"])
        finally:
            writer.give()
        return DispatchResult(text=json.dumps({"summary": f"did {deed['key']}"}))


def runtime(_: Descriptor) -> Asker:
    return Asker()
