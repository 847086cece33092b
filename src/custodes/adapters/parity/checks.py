"""The contract's checks: set the stage, dispatch through the adapter's own code, judge what comes back."""

from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from custodes.adapters.descriptor import Capability
from custodes.adapters.parity.cases import CASES, TIMEOUT_S
from custodes.adapters.parity.driving import (
    PATIENCE_S,
    TRACE,
    Came,
    ContractError,
    answered,
    arranged,
    call,
    dispatch,
    gone,
    set_stage,
    until_asked,
)
from custodes.adapters.parity.judge import judge_failure, judge_refusal, told
from custodes.adapters.parity.permissions import asks_for_leave
from custodes.adapters.parity.stage import Stage
from custodes.adapters.parity.subject import Subject
from custodes.adapters.port import RUN_VARIABLE

LITTLE, MUCH = 200_000, 16 << 20
"""Bytes of noise. Of the second, no more than `HELD` may be held at any time."""
HELD = 12 << 20

Check = Callable[[Subject, Path], Awaitable[None]]


async def tells(case: str, subject: Subject, folder: Path) -> None:
    """A case comes to its category, retry flag, wait and outcome, and to no secret."""
    stage = set_stage(subject, folder)
    if case == "timeout":
        stage = stage.asking(timeout_s=TIMEOUT_S)
    came = await dispatch(subject, case, stage)
    _judge(case, came)
    if case == "timeout" and came.stage.asked > 1:
        wrong = [f"the runtime was asked {came.stage.asked} times"]
        raise ContractError(
            told(
                "the case 'timeout'", CASES[case].says, wrong, CASES[case].why, "one dispatch is one attempt"
            )
        )


def _judge(case: str, came: Came, name: str = "") -> None:
    if wrong := judge_failure(name or case, CASES[case], came.result, came.stage.secret):
        raise ContractError(wrong)


async def in_a_flood(before: int, after: int, subject: Subject, folder: Path) -> None:
    """A limit is a limit wherever it stands in however much output, and memory is bounded."""
    stage = msgspec.structs.replace(set_stage(subject, folder), noise=(before, after))
    watched = max(before, after) >= MUCH
    if watched:
        # What an adapter loads for its first dispatch is not the flood's.
        await dispatch(subject, "limit", set_stage(subject, folder / "first"))
        tracemalloc.start()
    try:
        came = await dispatch(subject, "limit", stage)
        peak = tracemalloc.get_traced_memory()[1] if watched else 0
    finally:
        if watched:
            tracemalloc.stop()
    _judge("limit", came, f"limit, with {before} bytes of noise before and {after} after it")
    if peak > HELD:
        wrong = [
            f"{peak >> 20} MiB were held of {(before + after) >> 20} MiB of output; at most {HELD >> 20}"
        ]
        why = "a runtime that floods must not take the host with it"
        helps = "read lines as they come (native.Listener) and keep only what counts"
        raise ContractError(told("memory", "it printed without end", wrong, why, helps))


async def succeeds(subject: Subject, folder: Path) -> None:
    """An answer comes back as one, start and first output are told, the request reached the runtime."""
    came, answer = await answered(subject, set_stage(subject, folder))
    stage = came.stage
    kinds = [each.kind for each in came.progress]
    wrong = []
    if answer.text.strip() != stage.answer and answer.structured != msgspec.json.decode(stage.answer):
        wrong.append(f"`text` is {answer.text[:100]!r}, must be the answer: {stage.answer!r}")
    if stage.secret.encode() in msgspec.json.encode(answer):
        wrong.append("a field holds the secret of the environment")
    wrong += [f"no Progress(kind={kind!r}) was told" for kind in ("started", "output") if kind not in kinds]
    wrong += _unheard(stage, [stage.request.prompt])
    if stage.heard and f"{RUN_VARIABLE}=\n" in stage.heard:
        wrong.append("`request.environment` did not reach the runtime")
    if wrong:
        why = (
            "the first output confirms that a pool works again, and nothing else does while the work goes on"
        )
        helps = "native.run() tells the start; progress(Progress(kind='output', chars=…)) as the model speaks"
        raise ContractError(told("the case 'success'", "it answers", wrong, why, helps, answer))


def _unheard(stage: Stage, said: Iterable[str]) -> list[str]:
    """What did not reach the runtime. JSON may have escaped it on its way."""
    heard = stage.heard
    if not heard:
        return ["nothing was heard of it: use stage.program() or endpoint(), or call stage.hears() yourself"]
    return [f"{each!r} did not reach the runtime" for each in said if each not in heard]


async def chooses_its_model(subject: Subject, folder: Path) -> None:
    """``model_selection``: the model that is named is the one that is asked."""
    if not subject.descriptor.can("model_selection"):
        await _refused(subject, folder, "model_selection", "a model", model="m1")
        return
    came, _ = await answered(subject, set_stage(subject, folder))
    _works("model_selection", _unheard(came.stage, [came.stage.request.model or ""]), came)


async def chooses_its_effort(subject: Subject, folder: Path) -> None:
    """``effort_selection``: a listed effort is asked for; any other is refused before anything runs."""
    efforts = subject.descriptor.efforts
    if not subject.descriptor.can("effort_selection"):
        await _refused(
            subject, folder, "effort_selection", "an effort", effort=efforts[0] if efforts else "high"
        )
        return
    if not efforts:
        _works("effort_selection", ["the descriptor lists no `efforts`"], None)
    came, _ = await answered(subject, set_stage(subject, folder, effort=efforts[-1]))
    _works("effort_selection", _unheard(came.stage, [efforts[-1]]), came)
    bogus = folder / "bogus"
    await _refused(
        subject, bogus, "effort_selection", "the effort 'bogus', which is not listed", effort="bogus"
    )


async def fits_a_schema(subject: Subject, folder: Path) -> None:
    """``structured_output``: with a schema, the answer comes back as a JSON value."""
    schema = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
    if not subject.descriptor.can("structured_output"):
        await _refused(subject, folder, "structured_output", "an answer that fits a schema", schema=schema)
        return
    came, answer = await answered(subject, set_stage(subject, folder, schema=schema))
    wanted, got = msgspec.json.decode(came.stage.answer), answer.structured
    _works(
        "structured_output", [] if got == wanted else [f"`structured` is {got!r}, must be {wanted!r}"], came
    )


async def resumes(subject: Subject, folder: Path) -> None:
    """``resume``: the thread's id reaches the runtime, and a thread's id comes back."""
    thread = "7d44c2c5-5a3c-4a6e-9f5e-b7a1c1f0a001"
    if not subject.descriptor.can("resume"):
        await _refused(subject, folder, "resume", "an earlier thread to go on", resume=thread)
        return
    came, answer = await answered(subject, set_stage(subject, folder, resume=thread))
    wrong = _unheard(came.stage, [thread])
    wrong += [] if answer.native_thread_id else ["`native_thread_id` is empty"]
    _works("resume", wrong, came)


async def tells_usage(subject: Subject, folder: Path) -> None:
    """``usage`` and ``cost``: what is declared is told."""
    came, answer = await answered(subject, set_stage(subject, folder))
    for capability, field in (("usage", "output_tokens"), ("cost", "cost_usd")):
        value = getattr(answer.usage, field, None)
        if subject.descriptor.can(capability) and not value:  # type: ignore[arg-type]  # one of the literals above
            _works(capability, [f"`usage.{field}` is {value!r}, must be above zero"], came)


async def carries_the_trace(subject: Subject, folder: Path) -> None:
    """``trace_context``: the run's ``traceparent`` reaches the runtime."""
    if subject.descriptor.can("trace_context"):
        came, _ = await answered(subject, set_stage(subject, folder))
        _works("trace_context", _unheard(came.stage, [TRACE.split("-")[1]]), came)


def _works(capability: str, wrong: list[str], came: Came | None) -> None:
    if wrong:
        why = "who plans by it gets something else"
        helps = f"make it work, or take '{capability}' out of its capabilities"
        result = came.result if came else None
        raise ContractError(
            told(f"the capability '{capability}'", "it is declared", wrong, why, helps, result)
        )


async def _refused(subject: Subject, folder: Path, capability: Capability, asked: str, **fields: Any) -> None:
    came = await dispatch(subject, "success", set_stage(subject, folder, **fields))
    if wrong := judge_refusal(capability, asked, came.result):
        raise ContractError(wrong)
    if came.stage.asked:
        wrong = "the runtime was asked all the same, must be refused before anything runs"
        raise ContractError(told(f"asked for {asked}", "refused", [wrong], "it may cost", "check it first"))


async def leaves_nothing_when_cancelled(subject: Subject, folder: Path) -> None:
    """Cancelled in the middle: the cancellation goes on, and by then no process is left."""
    silent = msgspec.structs.replace(set_stage(subject, folder), tree=True)
    async with arranged(subject, "timeout", silent) as ready:
        came = Came(stage=ready)
        with anyio.move_on_after(PATIENCE_S) as patience:
            async with anyio.create_task_group() as group:
                group.start_soon(until_asked, ready, group.cancel_scope)
                await call(subject, came)
                group.cancel_scope.cancel()
    why = "a run that is cancelled must be over: its folder and its slot go to the next"
    if patience.cancelled_caught or not ready.asked:
        wrong = [f"the runtime was not asked in {PATIENCE_S:g} s" if not ready.asked else "it did not end"]
        raise ContractError(told("cancel", "it was cancelled", wrong, why, "does 'success' pass?"))
    if came.result is not None:
        wrong = ["the cancellation was swallowed: dispatch returned a result"]
        helps = "never catch BaseException or the loop's cancelled error without raising it again"
        raise ContractError(told("cancel", "it was cancelled", wrong, why, helps, came.result))
    await gone(ready, "cancel")


CHECKS: dict[str, Check] = {
    "answers as asked": succeeds,
    **{f"tells {case}": partial(tells, case) for case in CASES},
    "tells a limit before a flood": partial(in_a_flood, 0, LITTLE),
    "tells a limit in a flood": partial(in_a_flood, LITTLE // 2, LITTLE // 2),
    "tells a limit after a flood, in bounded memory": partial(in_a_flood, MUCH, 0),
    "leaves nothing when it is cancelled": leaves_nothing_when_cancelled,
    "model_selection works or is refused": chooses_its_model,
    "effort_selection works or is refused": chooses_its_effort,
    "structured_output works or is refused": fits_a_schema,
    "resume works or is refused": resumes,
    "usage and cost are told where they are declared": tells_usage,
    "trace_context works where it is declared": carries_the_trace,
    "permission_requests asks and obeys where it is declared": asks_for_leave,
}
"""Every check by the name a person reads. Each raises `ContractError`, and takes an empty folder."""
