"""A host whose child asks for leave, and says what it was told: ``python -m support.asking_host PROJECT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, PermissionAsk, ProgressSink
from custodes.supervision.work import Work
from support import scripted


async def ask(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
    assert request.permit is not None
    answer = await request.permit(PermissionAsk(tool="shell", detail="rm -r build"))
    return DispatchResult(text=json.dumps({"summary": answer}))


async def main(project: Path) -> None:
    script = scripted.install(project, "one")
    script.acts.append(ask)
    async with custodes.Supervision(project) as supervision, supervision.conversation("asking") as parent:
        outcome = await parent.dispatch(Work(role="reviewer", prompt="look", name="asker"))
    assert outcome.evidence is not None
    print(outcome.evidence.summary)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
