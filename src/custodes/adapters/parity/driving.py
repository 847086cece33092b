"""How a check drives an adapter: the stage, one dispatch on it, and the proof that nothing of it is left."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from custodes.adapters.parity.cases import MEANS
from custodes.adapters.parity.judge import told
from custodes.adapters.parity.stage import Stage
from custodes.adapters.parity.subject import Subject
from custodes.adapters.port import RUN_VARIABLE, DispatchRequest, DispatchResult, Progress

DEADLINE_S = 30.0
"""Seconds that any dispatch but the silent one may take."""
PATIENCE_S = 60.0
"""Seconds after which a dispatch that does not come back is given up: it does not keep its deadline."""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class ContractError(AssertionError):
    """An adapter breaks the contract. Its text says what is wrong, what is right, why, and what helps."""


class Came(msgspec.Struct, kw_only=True):
    """What a dispatch came to."""

    stage: Stage
    result: object = None
    progress: list[Progress] = []


def set_stage(subject: Subject, folder: Path, **asked: Any) -> Stage:
    folder.mkdir(exist_ok=True)
    secret = f"parity-{uuid.uuid4().hex}"
    request = DispatchRequest(
        run_id="parity",
        role="reviewer",
        prompt=f"Look at this folder. Never repeat {secret}.",
        mutable=False,
        cwd=str(folder),
        timeout_s=DEADLINE_S,
        model=subject.descriptor.default_model or "m1",
        environment={RUN_VARIABLE: uuid.uuid4().hex, "TRACEPARENT": TRACE, "PARITY_SECRET": secret},
    )
    if not subject.descriptor.can("model_selection"):
        request = msgspec.structs.replace(request, model=None)
    return Stage(
        descriptor=subject.descriptor,
        request=msgspec.structs.replace(request, **asked),
        folder=folder,
        secret=secret,
    )


@asynccontextmanager
async def arranged(subject: Subject, case: str, stage: Stage) -> AsyncIterator[Stage]:
    try:
        placed = subject.arrange(case, stage)
    except Exception as error:
        raise ContractError(
            f"parity.py: arrange({case!r}, stage) raised {type(error).__name__}: {error}\n"
            f"  helps:  it must give back the stage on which its runtime does this: {MEANS[case]}\n"
            "  more:   docs/adapters.md"
        ) from error
    if not isinstance(placed, Stage | AbstractContextManager):
        raise ContractError(
            f"parity.py: arrange({case!r}, stage) returned a {type(placed).__name__}\n"
            "  helps:  return stage.program(…), or a context manager that gives a Stage"
        )
    with nullcontext(placed) if isinstance(placed, Stage) else placed as ready:
        yield ready


async def dispatch(subject: Subject, case: str, stage: Stage) -> Came:
    """:raises ContractError: it raised, never came back, or left processes."""
    async with arranged(subject, case, stage) as ready:
        came = Came(stage=ready)
        with anyio.move_on_after(PATIENCE_S) as patience:
            await call(subject, came)
        if patience.cancelled_caught:
            wrong = [
                f"it did not come back in {PATIENCE_S:g} s, with a timeout_s of {ready.request.timeout_s:g}"
            ]
            why = "no runtime's own timeout is trusted: the adapter keeps ours"
            helps = (
                "native.run() and run_program() keep it; anyio.move_on_after(request.timeout_s) does for HTTP"
            )
            raise ContractError(told(f"the case '{case}'", "deadline", wrong, why, helps))
    await gone(came.stage, f"the case '{case}'")
    return came


async def answered(subject: Subject, stage: Stage) -> tuple[Came, DispatchResult]:
    """:raises ContractError: it is no success."""
    came = await dispatch(subject, "success", stage)
    result = came.result
    if not isinstance(result, DispatchResult) or result.failure is not None:
        helps = "what parity.py arranges for 'success' must be what its runtime really says when it is done"
        why = "an answer that is taken for a failure is asked for again"
        wrong = ["must be a DispatchResult with `failure` None"]
        raise ContractError(told("the case 'success'", "it answers", wrong, why, helps, result))
    return came, result


async def call(subject: Subject, came: Came) -> None:
    runtime = subject.make(came.stage.descriptor)
    try:
        came.result = await runtime.dispatch(came.stage.request, came.progress.append)
    except Exception as error:
        wrong = [f"dispatch raised {type(error).__name__}: {error}"]
        why = "an exception has no category: the breaker learns nothing and the person reads a traceback"
        helps = "return DispatchResult(failure=…) for whatever a runtime or provider does"
        raise ContractError(told("dispatch", "it raised", wrong, why, helps)) from error


async def gone(stage: Stage, what: str) -> None:
    left = await anyio.to_thread.run_sync(_marked, stage.request.environment[RUN_VARIABLE])
    if left:
        wrong = [f"still running: {', '.join(left)}"]
        why = "what goes on after its end works on the folder that somebody else now has"
        helps = "start programs by native.run() or run_program(): they end the whole tree, with proof"
        raise ContractError(told(what, "it has ended", wrong, why, helps))


def _marked(mark: str) -> list[str]:
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_VARIABLE) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.name()} (pid {process.pid})")
        except psutil.Error:
            continue
    return found


async def until_asked(stage: Stage, scope: anyio.CancelScope) -> None:
    # A stand-in is another process: that it was asked shows in a file, and nobody tells us.
    while not stage.asked:  # noqa: ASYNC110
        await anyio.sleep(0.01)
    scope.cancel()
