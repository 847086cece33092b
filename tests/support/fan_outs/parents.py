"""The parents of a life: what they ask for, what they cancel, and who meddles meanwhile."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, TypeVar

import trio

import custodes
from custodes import Budget, Conversation, FanOut
from custodes.supervision.child import Child
from support.fan_outs.life import Asked, Fan, Life, draw_work
from support.puppets import ScriptedError

T = TypeVar("T")


def draw_budget(life: Life) -> Budget:
    draw = life.random

    def limited(value: T) -> T | None:
        return value if draw.random() < life.temper.limits else None

    return Budget(
        children=limited(draw.randrange(1, 8)),
        wall_seconds=limited(draw.uniform(0.5, 20)),
        tokens=limited(draw.randrange(5_000)),
        usd=limited(draw.randrange(400) / 100),
        when_spent=draw.choice(["finish", "stop"]),
    )


async def host(life: Life) -> None:
    """The whole life of one host."""
    draw = life.random
    async with custodes.Supervision(life.project, observer=life.observe) as supervision:
        async with trio.open_nursery() as meddlers:
            meddlers.start_soon(meddle_with_settings, life)
            meddlers.start_soon(write_elsewhere, life)
            async with trio.open_nursery() as parents:
                for number in range(draw.choice([1, 1, 2])):
                    parents.start_soon(converse, life, supervision, f"conversation-{number}")
            meddlers.cancel_scope.cancel()
        note_what_is_held(life, supervision)


async def converse(life: Life, supervision: custodes.Supervision, name: str) -> None:
    draw = life.random
    async with supervision.conversation(name) as parent, trio.open_nursery() as works:
        for _ in range(draw.choice([1, 1, 1, 2])):
            works.start_soon(fan_out, life, parent)
        for _ in range(draw.choice([0, 0, 1])):
            works.start_soon(ask_alone, life, parent)


async def ask_alone(life: Life, parent: Conversation) -> None:
    work = draw_work(life, metered=False)
    with trio.move_on_after(life.random.choice([3.0, 1e6])):
        life.alone.append(await parent.dispatch(work))


async def fan_out(life: Life, parent: Conversation) -> None:
    draw = life.random
    budget = draw_budget(life)
    fan = parent.fan_out(budget=budget, max_parallel=draw.choice([None, None, 1, 2]))
    async with trio.open_nursery() as cancels:
        with trio.CancelScope() as scope, suppress(ScriptedError):
            async with fan:
                told = Fan(fan, budget, trio.current_time())
                life.fans.append(told)
                for _ in range(draw.randint(1, 8)):
                    if draw.random() < 0.5:
                        await trio.sleep(draw.uniform(0, life.temper.pause_s))
                    ask_for_one(life, told, cancels)
                await end_early(life, fan, scope)
        told.outcomes = fan.outcomes
        told.ended_at = trio.current_time()


def ask_for_one(life: Life, told: Fan, cancels: trio.Nursery) -> None:
    work = draw_work(life, metered=told.budget.tokens is not None or told.budget.usd is not None)
    child = told.fan.start(work)
    asked = Asked(work, child, trio.current_time())
    told.asked.append(asked)
    life.note(child.run_id, work)
    if life.random.random() < life.temper.cancels:
        cancels.start_soon(cancel_child, life, asked)


async def end_early(life: Life, fan: FanOut, scope: trio.CancelScope) -> None:
    """Or not, as its temper is."""
    draw = life.random
    if draw.random() >= life.temper.early_ends:
        return
    await some_time(life)
    match draw.choice(["cancel", "cancel all", "raise"]):
        case "cancel":
            scope.cancel()
            await trio.lowlevel.checkpoint()
        case "cancel all":
            await fan.cancel("its parent has enough")
        case "raise":
            raise ScriptedError


async def some_time(life: Life) -> None:
    """Until a random instant; or until something has just happened, where races are."""
    draw = life.random
    if draw.random() < 0.5:
        await trio.sleep(draw.uniform(0, 8))
    else:
        with trio.move_on_after(20):
            await life.happens(draw.randint(1, 20))


async def cancel_child(life: Life, asked: Asked) -> None:
    """At a random instant, up to three times at once."""
    draw = life.random
    await some_time(life)

    async def cancel(child: Child) -> None:
        asked.answers.append(await child.cancel("not wanted any more"))

    async with trio.open_nursery() as cancels:
        for _ in range(draw.randint(1, 3)):
            cancels.start_soon(cancel, asked.child)


# -- Who meddles


def settle_on(life: Life, **policy: Any) -> None:
    """Write the settings, whole at once."""
    file = life.project / ".coding-os" / "hub-settings.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"model_routing": policy}))
    os.replace(new, file)  # noqa: PTH105  # atomic, and another file each time


def draw_policy(life: Life) -> dict[str, Any]:
    draw = life.random
    return {
        "enabled": True,
        "fallback_policy": draw.choice(["fail_closed", "same_adapter_default", "next_eligible"]),
        "max_parallel": draw.choice([1, 2, 3, 16]),
        "cooldown": {"default_seconds": draw.choice([1, 4, 30]), "maximum_seconds": 60},
    }


async def meddle_with_settings(life: Life) -> None:
    draw = life.random
    while True:
        await trio.sleep(draw.uniform(1, 15))
        policy = draw_policy(life)
        if draw.random() < 0.3:
            settle_on(life, **policy | {"enabled": False})
            since = trio.current_time()
            await trio.sleep(draw.uniform(0.1, 6))
            life.disabled.append((since, trio.current_time()))
        settle_on(life, **policy)


async def write_elsewhere(life: Life) -> None:
    """Another process holds the store, for no longer than anybody waits for it."""
    draw = life.random
    while True:
        await trio.sleep(draw.uniform(0, life.temper.busy_gap_s))
        life.busy_until = trio.current_time() + draw.uniform(0, 0.8)


def note_what_is_held(life: Life, supervision: custodes.Supervision) -> None:
    """Once everybody is gone: what of the host's own is still taken."""
    tree = supervision._tree
    if tree is not None:
        life.remains["slots of the host"] = tree.services.slots.taken
        life.remains["places of live programs"] = tree.services.alive.taken
        life.remains["nests"] = len(tree.services.nests)
        life.remains["places in the host's line"] = len(tree.services.leases._line._at)
    for told in life.fans:
        if told.fan._slots is not None:
            life.remains[f"slots of {told.fan!r}"] = told.fan._slots.taken
