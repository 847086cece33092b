"""A runtime in process that does what its seed says: it works, lies, hangs, limits, and is slow to end."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import anyio
import msgspec
import trio

from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import (
    Category,
    Certainty,
    DispatchRequest,
    DispatchResult,
    Failure,
    Progress,
    ProgressSink,
    Usage,
)
from custodes.adapters.process_errors import LeftBehind, Survivor
from custodes.supervision.budgets.account import Account
from custodes.supervision.nesting.client import Client
from custodes.supervision.record.ids import new_id
from custodes.supervision.work import NO_LIMITS
from support.fan_outs.life import Call, Leftover, Life, Nested, Used, draw_work
from support.puppets import ScriptedError

LIVES: dict[str, Life] = {}
"""By the project's folder: the dispatch module finds its life there."""


class Stage:
    """One call, and what a deed may do in it."""

    def __init__(self, life: Life, call: Call, progress: ProgressSink) -> None:
        self.life = life
        self.call = call
        self.random: random.Random = life.random
        self._progress = progress

    async def pass_time(self, most: float = 4.0) -> None:
        await anyio.sleep(self.random.uniform(0, most))

    async def until_timeout(self) -> None:
        await anyio.sleep(self.call.request.timeout_s)

    def output(self) -> None:
        self._seen_at_work("output")

    def tool(self) -> None:
        self._seen_at_work("tool")

    def maybe_output(self) -> None:
        if self.random.random() < 0.5:
            self.output()

    def tell(self, tokens: int, cents: int) -> None:
        """Of what was used in all so far. It may be the last thing: the budget stops a call that has used
        too much at its next wait."""
        self.call.told.append((self.life.tick(), (tokens, cents)))
        self._progress(Progress(kind="usage", usage=_usage(tokens, cents)))

    def ends(self, failure: Failure | None = None, **said: Any) -> DispatchResult:
        """The result; now and then it says what was used."""
        if self.random.random() < 0.6:
            self.call.final = self.some()
            said["usage"] = _usage(*self.call.final)
        self.call.failure = failure
        return DispatchResult(failure=failure, **said)

    def some(self) -> Used:
        """Some use, as lavish as its life is."""
        tokens, cents = (
            self.random.randint(0, self.life.temper.lavish * each) for each in self.call.estimate
        )
        return tokens, cents

    def answers(self, **said: Any) -> DispatchResult:
        return self.ends(text=json.dumps({"summary": "well"}), **said)

    def fails(
        self, category: Category, outcome: Certainty, *, retryable: bool = False, **said: Any
    ) -> DispatchResult:
        return self.ends(
            Failure(category=category, reason="scripted", outcome=outcome, retryable=retryable, **said)
        )

    def leave_behind(self) -> Survivor:
        """Something goes on that nobody can end for a while."""
        self.call.leaves = True
        self.life.leftovers.append(Leftover(self.call, trio.current_time() + self.random.uniform(0, 20)))
        return Survivor(4_000_000, "tool", "stuck")

    def _seen_at_work(self, kind: Any) -> None:
        self.call.output_at = self.call.output_at or trio.current_time()
        self._progress(Progress(kind=kind, chars=1))


def _usage(tokens: int, cents: int) -> Usage:
    return Usage(input_tokens=tokens - tokens // 4, output_tokens=tokens // 4, cost_usd=cents / 100)


# -- The deeds


async def answer(stage: Stage) -> DispatchResult:
    await stage.pass_time()
    stage.output()
    await stage.pass_time()
    return stage.answers()


async def answer_silently(stage: Stage) -> DispatchResult:
    await stage.pass_time()
    return stage.answers()


async def answer_as_another(stage: Stage) -> DispatchResult:
    stage.output()
    await stage.pass_time()
    return stage.answers(served_model="nobody-asked-for-it")


async def answer_late(stage: Stage) -> DispatchResult:
    await stage.until_timeout()
    await stage.pass_time(8)
    return stage.answers()


async def tell_of_it(stage: Stage) -> DispatchResult:
    stage.output()
    for _ in range(stage.random.randint(1, 5)):
        await stage.pass_time(1)
        stage.tell(*stage.some())
    await stage.pass_time(1)
    return stage.answers()


async def crash(stage: Stage) -> NoReturn:
    await stage.pass_time()
    stage.maybe_output()
    raise ScriptedError


async def quit_the_host(stage: Stage) -> NoReturn:
    await stage.pass_time()
    raise SystemExit(3)


async def hang(stage: Stage) -> NoReturn:
    stage.maybe_output()
    await anyio.sleep_forever()
    raise AssertionError


async def time_out(stage: Stage) -> DispatchResult:
    stage.maybe_output()
    await stage.until_timeout()
    return stage.fails("timeout", "unknown")


async def limit(stage: Stage) -> DispatchResult:
    await stage.pass_time()
    stage.maybe_output()
    wait = stage.random.choice([None, 1, 3, 30])
    return stage.fails("capacity", "known_failed", retryable=True, retry_after_s=wait)


async def limit_at_once(stage: Stage) -> DispatchResult:
    await anyio.lowlevel.checkpoint()
    return stage.fails("capacity", "known_failed", retryable=True, retry_after_s=stage.random.choice([2, 40]))


async def limit_after_a_tool(stage: Stage) -> DispatchResult:
    stage.tool()
    await stage.pass_time()
    return stage.fails("capacity", "unknown", retryable=True)


async def overload(stage: Stage) -> DispatchResult:
    await stage.pass_time()
    return stage.fails("provider", "unknown", retryable=True, overloaded=True)


async def break_down(stage: Stage) -> DispatchResult:
    await stage.pass_time()
    stage.maybe_output()
    return stage.fails("provider", "unknown", retryable=True)


async def be_unreachable(stage: Stage) -> DispatchResult:
    await stage.pass_time(1)
    return stage.fails("unavailable", "known_failed", retryable=True)


async def be_invalid(stage: Stage) -> DispatchResult:
    await stage.pass_time(1)
    return stage.fails("invalid", "known_failed")


async def lie(stage: Stage) -> DispatchResult:
    """A success without evidence, with some of another shape, or what is no result at all."""
    stage.maybe_output()
    await stage.pass_time()
    lies: list[Callable[[], object]] = [
        lambda: stage.ends(text="it is done"),
        lambda: stage.ends(text=json.dumps({"summary": 5})),
        lambda: stage.ends(structured=[]),
        lambda: None,
        lambda: {"text": "done"},
    ]
    return cast("DispatchResult", stage.random.choice(lies)())


async def leave_something(stage: Stage) -> DispatchResult:
    stage.output()
    await stage.pass_time()
    survivor = stage.leave_behind()
    return stage.fails("provider", "unknown", left=(str(survivor),))


async def delegate(stage: Stage) -> DispatchResult:
    """Ask for work of its own, as a process that it started would, and wait for it."""
    stage.output()
    async with anyio.create_task_group() as asks:
        for _ in range(stage.random.randint(1, 2)):
            if len(stage.life.calls) < MOST_CALLS:
                asks.start_soon(ask_the_owner, stage)
    await stage.pass_time(1)
    return stage.answers()


async def ask_the_owner(stage: Stage) -> None:
    life, call = stage.life, stage.call
    work = draw_work(life, metered=any(call.estimate))
    above = life.works.get(call.run_id)
    if above is not None and work.scope and stage.random.random() < 0.7:  # it borrows
        work = msgspec.structs.replace(work, scope=tuple(f"{name}/in" for name in above.scope or (".",)))
    run_id = new_id()
    life.nested[run_id] = Nested(call.run_id, work)
    life.note(run_id, work)
    client = Client(life.project, call.request.environment)
    client._database = life.store  # it would open the file that its owner has open
    ask = client.ask(run_id, work, "", Account.of(NO_LIMITS))
    if stage.random.random() < 0.4:  # as a process that dies once it has asked
        await ask._posted(life.store)
        await stage.pass_time()
    else:
        life.nested[run_id].outcome = await ask.perform()


MOST_CALLS = 60
"""Of a life that has had so many, none asks for more."""

Deed = Callable[[Stage], Awaitable[DispatchResult]]
_WEIGHTS: dict[Deed, int] = {
    answer: 8,
    answer_silently: 3,
    answer_as_another: 1,
    answer_late: 1,
    tell_of_it: 3,
    crash: 1,
    quit_the_host: 1,
    hang: 2,
    time_out: 1,
    limit: 4,
    limit_at_once: 3,
    limit_after_a_tool: 1,
    overload: 2,
    break_down: 2,
    be_unreachable: 2,
    be_invalid: 1,
    lie: 2,
    leave_something: 1,
    delegate: 3,
}
DEEDS: dict[str, Deed] = {deed.__name__: deed for deed in _WEIGHTS}
USUAL: dict[str, int] = {deed.__name__: weight for deed, weight in _WEIGHTS.items()}
"""How often each is done in a life of no particular temper."""


class Player:
    """The runtime of one adapter."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._adapter = descriptor.id
        self._project = str(Path(descriptor.folder).parents[2])

    async def dispatch(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        life = LIVES[self._project]
        [deed] = life.random.choices([*life.deeds], [*life.deeds.values()])
        estimate = life.estimates.get(request.run_id, (0, 0))
        call = Call(request, self._adapter, deed, estimate, trio.current_time(), life.tick())
        life.calls.append(call)
        stage = Stage(life, call, progress)
        try:
            return await DEEDS[deed](stage)
        except anyio.get_cancelled_exc_class():
            if life.random.random() < 0.3:
                with anyio.CancelScope(shield=True):
                    await stage.pass_time(6)
            if life.random.random() < 0.1:
                raise LeftBehind("scripted", (stage.leave_behind(),)) from None
            raise
        finally:
            call.ended_at, call.returned = trio.current_time(), life.tick()
            if not call.leaves:
                call.gone = call.returned


def runtime(descriptor: Descriptor) -> Player:
    return Player(descriptor)
