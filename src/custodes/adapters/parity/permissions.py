"""The contract of ``permission_requests``: leave is really asked for, and the answer is what happens."""

from __future__ import annotations

from pathlib import Path

import anyio

from custodes.adapters.asks import MAX_DETAIL
from custodes.adapters.parity.cases import MEANS, TIMEOUT_S
from custodes.adapters.parity.driving import (
    PATIENCE_S,
    Came,
    ContractError,
    arranged,
    call,
    dispatch,
    gone,
    set_stage,
)
from custodes.adapters.parity.judge import told
from custodes.adapters.parity.subject import Subject
from custodes.adapters.port import DispatchResult, PermissionAnswer, PermissionAsk

CASE = "permission"
_WORDS = "touch"
"""How the command that leave is asked for begins."""


class Decider:
    """Who is asked. ``answer`` None: never a word."""

    def __init__(self, answer: PermissionAnswer | None) -> None:
        self.answer = answer
        self.asks: list[PermissionAsk] = []
        self.heard = anyio.Event()

    async def __call__(self, ask: PermissionAsk) -> PermissionAnswer:
        self.asks.append(ask)
        self.heard.set()
        if self.answer is None:
            await anyio.sleep_forever()
            raise AssertionError  # sleep_forever ends by cancellation alone
        return self.answer


async def asks_for_leave(subject: Subject, folder: Path) -> None:
    """Allowed it is done, denied it is not; nobody is asked for work that may not write."""
    if not subject.descriptor.can("permission_requests"):
        return
    await _decided(subject, folder / "allowed", Decider("allow"), done=True)
    await _decided(subject, folder / "denied", Decider("deny"), done=False)
    await _decided(subject, folder / "nobody", None, done=False)
    await _decided(subject, folder / "reads", Decider("allow"), done=False, mutable=False)
    await _late(subject, folder / "late")
    await _cancelled(subject, folder / "cancelled")


async def _decided(
    subject: Subject, folder: Path, decider: Decider | None, *, done: bool, mutable: bool = True
) -> None:
    came = await dispatch(subject, CASE, set_stage(subject, folder, mutable=mutable, permit=decider))
    wrong = []
    if came.stage.made.exists() is not done:
        wrong.append(
            "it was denied, and was done all the same" if not done else "it was allowed, and was not done"
        )
    if done and not (isinstance(came.result, DispatchResult) and came.result.failure is None):
        wrong.append("it was allowed, and must answer: `failure` must be None")
    if decider is not None and mutable:
        wrong += _told_of(decider.asks)
    elif decider is not None and decider.asks:
        wrong.append("work that may not write was asked for: it must be denied without asking")
    _judge(folder.name, wrong, came.result)


def _told_of(asks: list[PermissionAsk]) -> list[str]:
    if len(asks) != 1:
        return [f"`request.permit` was called {len(asks)} times, must be called once"]
    ask, wrong = asks[0], []
    if not ask.tool:
        wrong.append("`tool` is empty")
    if _WORDS not in ask.detail:
        wrong.append(f"`detail` is {ask.detail[:100]!r}, must show the command that is asked for")
    if len(ask.detail) > MAX_DETAIL:
        wrong.append(f"`detail` has {len(ask.detail)} characters, may have {MAX_DETAIL}")
    return wrong


async def _late(subject: Subject, folder: Path) -> None:
    stage = set_stage(subject, folder, mutable=True, permit=Decider(None), timeout_s=TIMEOUT_S)
    came = await dispatch(subject, CASE, stage)
    failure = came.result.failure if isinstance(came.result, DispatchResult) else None
    late = failure is not None and failure.category == "timeout"
    wrong = [] if late else [f"nobody answered in {TIMEOUT_S} s: `failure.category` must be 'timeout'"]
    _judge("unanswered", wrong, came.result)


async def _cancelled(subject: Subject, folder: Path) -> None:
    decider = Decider(None)
    stage = set_stage(subject, folder, mutable=True, permit=decider)
    async with arranged(subject, CASE, stage) as ready:
        came = Came(stage=ready)
        with anyio.move_on_after(PATIENCE_S) as patience:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_heard, decider, group.cancel_scope)
                await call(subject, came)
                group.cancel_scope.cancel()
    wrong = [] if decider.asks else ["`request.permit` was never called"]
    if patience.cancelled_caught or came.result is not None:
        wrong.append("cancelled while it waited for an answer, it must end, and the cancellation go on")
    _judge("cancelled", wrong, came.result)
    await gone(ready, "cancelled while it waited for an answer")


async def _until_heard(decider: Decider, scope: anyio.CancelScope) -> None:
    await decider.heard.wait()
    scope.cancel()


def _judge(name: str, wrong: list[str], result: object) -> None:
    if wrong:
        what = f"the capability 'permission_requests', {name}: {MEANS[CASE]}"
        why = "who says no must be obeyed, and who is not asked has not said yes"
        helps = "asks.Asks(request.permit) puts an ask and gives the answer back: native.attempt(asks=…)"
        raise ContractError(told(what, "it is declared", wrong, why, helps, result))
