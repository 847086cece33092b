"""The steps of a dispatch, by name, and a process that kills itself with -9 at exactly one of them.

A step hangs on the function of the product that begins or ends there, so what is killed is what is shipped:
nothing in the product knows of it. A function that is no longer there fails loudly, and a step that a
dispatch no longer passes leaves its host alive, which the test that killed it tells.
"""

from __future__ import annotations

import importlib
import inspect
import os
import signal
from collections.abc import Callable
from functools import wraps
from itertools import count
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from custodes.supervision.pools.admission import Admit, Settle

Meant = Callable[..., bool]
"""Whether a call with these arguments is the step."""


class Step(NamedTuple):
    """``row`` is what the file holds of the attempt at this step, and ``scope`` whether its lease is held.

    ``where`` is ``module:name``. Only ``mutable`` work passes a step that says so; a ``shared`` one is passed
    once for all children, or for those of one batch.
    """

    name: str
    where: str
    when: Literal["before", "after"] = "after"
    row: Literal["none", "open", "closed"] = "none"
    scope: bool = False
    mutable: bool = False
    shared: bool = False
    meant: Meant = lambda *_: True


def _holds(kind: type) -> Meant:
    return lambda *given: any(isinstance(each, kind) for each in given[1])


def _says(word: str) -> Meant:
    return lambda _, line: line.startswith(word)


def _rows(_: object, rows: Any) -> bool:
    return bool(rows)


ROOM = "custodes.supervision"
HEALTH = f"{ROOM}.pools.health:fold_and_commit"
LEASES = f"{ROOM}.writers.lease_actor"
KEEPER = "custodes.adapters.keeper:Keeper"

STEPS = (
    Step("frozen", f"{ROOM}.fan_out:freeze"),
    Step("child counted", f"{ROOM}.budgets.account:Account.take_child"),
    Step("store opened", "custodes.store:Database._opened", shared=True),
    Step("what dead owners left is closed", f"{ROOM}.tree:close_dead_owners", shared=True),
    Step("child begun", f"{ROOM}.child:ChildActor.receive", "before"),
    Step("scope taken, not committed", f"{LEASES}:save_leases", mutable=True, shared=True, meant=_rows),
    Step("scope held", f"{ROOM}.writers.leases:Leases._taken", scope=True, mutable=True),
    Step("slot taken", f"{ROOM}.dispatching.dispatch:Dispatch._admit", "before", scope=True),
    Step("budget reserved", f"{ROOM}.budgets.account:Account.reserve", scope=True),
    Step("admitted, not committed", f"{ROOM}.record.records:insert", scope=True, shared=True, meant=_rows),
    Step("admission committed", HEALTH, row="open", scope=True, shared=True, meant=_holds(Admit)),
    Step("budget begun", f"{ROOM}.budgets.account:Account.begin", row="open", scope=True),
    Step("runtime called", f"{ROOM}.dispatching.attempt:call_runtime", "before", row="open", scope=True),
    Step("keeper started", f"{KEEPER}.__init__", row="open", scope=True),
    Step("go sent", f"{KEEPER}.go", row="open", scope=True),
    Step("program made", f"{KEEPER}._hear", row="open", scope=True, meant=_says("B")),
    Step("program runs", f"{KEEPER}._hear", row="open", scope=True, meant=_says("P")),
    Step("first output", "custodes.adapters.process_output:Output.add", row="open", scope=True),
    Step("program ended", f"{KEEPER}._hear", row="open", scope=True, meant=_says("X")),
    Step("nothing of it is left", f"{KEEPER}._hear", row="open", scope=True, meant=_says("D")),
    Step("runtime answered", f"{ROOM}.dispatching.attempt:call_runtime", row="open", scope=True),
    Step("budget settled", f"{ROOM}.budgets.account:Account.settle", row="open", scope=True),
    Step(
        "end written, not committed",
        f"{ROOM}.record.records:update",
        row="open",
        scope=True,
        shared=True,
        meant=_rows,
    ),
    Step("end committed", HEALTH, row="closed", scope=True, shared=True, meant=_holds(Settle)),
    Step("attempt over", f"{ROOM}.dispatching.attempt:AttemptRun.perform", row="closed", scope=True),
    Step(
        "scope given back, not committed",
        f"{LEASES}:delete_leases",
        row="closed",
        scope=True,
        mutable=True,
        shared=True,
        meant=_rows,
    ),
    Step("scope given back", f"{ROOM}.writers.leases:Leases._release", row="closed", mutable=True),
    Step("child answered", f"{ROOM}.child:ChildActor.receive", row="closed"),
    Step("evidence returned", f"{ROOM}.child:Child.end", row="closed"),
    Step("fan-out left", f"{ROOM}.fan_out:FanOut.__aexit__", row="closed", shared=True),
    Step("store closed", "custodes.store:Database.aclose", row="closed", shared=True),
)

BOOK = f"{ROOM}.plans.plan_book"

PLAN_STEPS = (
    Step("plan written, not committed", f"{ROOM}.plans.plan_run:save_plan"),
    Step("start of a step written, not committed", f"{BOOK}:save_steps"),
    Step("start of a step on record", f"{BOOK}:PlanBook.starting"),
    Step("step asked for", f"{ROOM}.fan_out:FanOut.put"),
    Step("end of a step written, not committed", f"{BOOK}:PlanBook.ended", "before", row="closed"),
    Step("end of a step on record", f"{BOOK}:PlanBook.ended", row="closed"),
    Step("plan ended", f"{BOOK}:PlanBook.close", row="closed"),
)
"""What a plan passes besides: ``row`` is that of its first step's attempt."""


def step_named(name: str) -> Step:
    return next(step for step in (*STEPS, *PLAN_STEPS) if step.name == name)


def die_at(step: Step, passing: int) -> None:
    """From now on this process is killed with -9 where the step is passed for that time (from 1)."""
    module, _, path = step.where.partition(":")
    holder: Any = importlib.import_module(module)
    *owners, name = path.split(".")
    for owner in owners:
        holder = attrgetter(owner)(holder)
    passings = count(1)

    def reach(*given: object) -> None:
        if step.meant(*given) and next(passings) == passing:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(holder, name, _wrapped(getattr(holder, name), step.when, reach))


def _wrapped(
    function: Callable[..., Any], when: Literal["before", "after"], reach: Callable[..., None]
) -> Callable[..., Any]:
    if not inspect.iscoroutinefunction(function):

        @wraps(function)
        def plain(*given: Any, **named: Any) -> Any:
            if when == "before":
                reach(*given)
            answer = function(*given, **named)
            if when == "after":
                reach(*given)
            return answer

        return plain

    @wraps(function)
    async def awaited(*given: Any, **named: Any) -> Any:
        if when == "before":
            reach(*given)
        answer = await function(*given, **named)
        if when == "after":
            reach(*given)
        return answer

    return awaited
