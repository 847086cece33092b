# ruff: noqa: S311  # chance here must be repeatable, not secret
"""One seed, one life of a supervisor tree: random, virtual in time, and the same again for the same seed.

:func:`simulate` draws a tree and a script from the seed, runs it on trio with a mock clock and seeded
scheduling, and judges the journal afterwards. Whoever takes part writes down what happens to it; the
invariants are checked on the journal alone, by code that shares nothing with the kernel's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest
import trio
import trio._core._run as trio_run
import trio.testing

import custodes.actors.executor as executor_module
import custodes.actors.ref as ref_module
from custodes.actors import (
    ActorError,
    ChildSpec,
    Intensity,
    StartFailed,
    SupervisorFailed,
    UnknownChild,
)
from custodes.actors.actor_child import ActorChild
from custodes.actors.child_spec import RESTARTS
from custodes.actors.intensity import Crash, Verdict, judge
from custodes.actors.loop import logger
from support.invariants import INVARIANTS
from support.puppets import (
    DEEDS,
    CountedReply,
    Do,
    Judgement,
    Puppet,
    Violation,
    Watched,
    World,
)

PATIENCE = 10_000.0
"""Virtual seconds after which a run counts as hung. Scripts last for seconds."""

# -- The script


def draw_actor(world: World, child_id: str) -> ChildSpec[Puppet]:
    draw = world.random
    return ChildSpec(
        id=child_id,
        start=lambda: Puppet(world),
        restart=draw.choice(RESTARTS),
        shutdown=draw.choice([0.5, 1.0, 5.0]),
    )


def draw_supervisor(world: World, levels: int) -> Watched:
    draw = world.random
    specs: list[ChildSpec[Any]] = []
    for number in range(draw.randint(0 if levels else 1, 3)):
        child_id = f"s{number}"
        if levels and draw.random() < 0.4:
            specs.append(nested(world, child_id, levels - 1))
        else:
            specs.append(draw_actor(world, child_id))
    restarts = draw.randint(0, 4)
    return Watched(
        world,
        specs,
        strategy=draw.choice(["one_for_one", "one_for_all", "rest_for_one"]),
        intensity=Intensity(
            restarts=restarts, period=draw.choice([5.0, 20.0]), backoff=draw.choice([0.0, 0.05])
        ),
        max_children=draw.choice([3, 100]),
    )


def nested(world: World, child_id: str, levels: int) -> ChildSpec[Watched]:
    return ChildSpec(
        id=child_id, start=lambda: draw_supervisor(world, levels), restart=world.random.choice(RESTARTS)
    )


# -- The hosts of the tree


async def host(world: World) -> None:
    draw = world.random
    ending = draw.choice(["leave", "cancel", "stop"])
    lifetime = draw.uniform(0.5, 12)
    clients = draw.randint(2, 6)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            try:
                with trio.CancelScope() as scope:
                    async with draw_supervisor(world, levels=2) as root:
                        for _ in range(clients):
                            nursery.start_soon(client, world)
                        await trio.sleep(lifetime)
                        if ending == "cancel":
                            scope.cancel()
                            await trio.sleep_forever()
                        elif ending == "stop":
                            await root.stop("the host stops it")
            except SupervisorFailed as failure:
                world.failures.append(failure)
            except StartFailed as failure:
                world.crashes.append(failure)
            world.over = True


async def client(world: World) -> None:
    """Asks, starts and stops at random; an answer of any kind has to come."""
    draw = world.random
    while not world.over:
        await trio.sleep(draw.random())
        supervisor = draw.choice(world.supervisors)
        with trio.move_on_after(draw.choice([0.0, 0.4, math.inf])):
            with suppress(ActorError):
                chance = draw.random()
                if chance < 0.6:
                    await ask_someone(world, supervisor)
                elif chance < 0.85:
                    await start_someone(world, supervisor)
                else:
                    await stop_someone(world, supervisor)


async def ask_someone(world: World, supervisor: Watched) -> None:
    draw = world.random
    refs = [child.ref for child in supervisor._executor.children.values() if isinstance(child, ActorChild)]
    if not refs:
        return
    serial = next(world.serials)
    answer = await draw.choice(refs).ask(Do(serial, draw.choice(DEEDS), draw.random() * 3))
    if answer != serial:
        raise Violation(f"message {serial} was answered with {answer}")


async def start_someone(world: World, supervisor: Watched) -> None:
    draw = world.random
    child_id = f"d{next(world.serials)}"
    if draw.random() < 0.2:
        await supervisor.start_child(nested(world, child_id, levels=1))
    else:
        ref = await supervisor.start_child(draw_actor(world, child_id))
        ref.tell(Do(next(world.serials), draw.choice(DEEDS), draw.random() * 3))


async def stop_someone(world: World, supervisor: Watched) -> None:
    draw = world.random
    ids = list(supervisor._executor.children)
    if not ids:
        return
    child_id = draw.choice(ids)
    ends = []

    child = supervisor._executor.children[child_id]

    async def stop(reason: str) -> None:
        if child.ending.reason is None and child.ending.end is None:
            world.first_reasons[id(child.ending)] = (child.ending, reason)
        with suppress(UnknownChild):
            ends.append(await supervisor.stop_child(child_id, reason))

    async with trio.open_nursery() as nursery:
        for number in range(draw.randint(1, 3)):
            nursery.start_soon(stop, f"client {number}")
    if len(set(ends)) > 1:
        raise Violation(f"stops of {child_id} were answered differently: {ends}")


# -- Running one


def simulate(seed: int) -> World:
    """Run one seed. :raises Violation: an invariant does not hold."""
    world = World(random.Random(seed))
    with seeded_scheduling(seed), recording(world):
        try:
            trio.run(host, world, clock=trio.testing.MockClock(autojump_threshold=0))
        except BaseException as error:
            raise Violation(f"the run ended with {error!r}") from error
    for invariant in INVARIANTS:
        invariant(world)
    return world


@contextmanager
def seeded_scheduling(seed: int) -> Iterator[None]:
    """Trio shuffles the tasks of each pass: here by our seed, through its own hook for tests."""
    state = trio_run._r.getstate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        trio_run._r.seed(seed)
        yield
    trio_run._r.setstate(state)


@contextmanager
def recording(world: World) -> Iterator[None]:
    """Overhear three places of the kernel: where children are made, crashes judged, replies given."""
    make = executor_module.Executor._make

    def recorded_make(executor: executor_module.Executor, spec: ChildSpec[Any], path: str) -> object:
        supervisor = executor.supervisor
        if isinstance(supervisor, Watched):
            world.write("make", supervisor.serial, spec.id)
        return make(executor, spec, path)

    def recorded_judge(intensity: Intensity, history: tuple[Crash, ...], crash: Crash) -> Verdict:
        verdict = judge(intensity, history, crash)
        [serial] = [one.serial for one in world.supervisors if one._executor.intensity is intensity]
        world.judgements[serial].append(Judgement(crash.at, crash.cause, verdict.delay is not None))
        return verdict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logger, "disabled", True)  # thousands of crashes are meant
        patch.setattr(executor_module.Executor, "_make", recorded_make)
        patch.setattr(executor_module, "judge", recorded_judge)
        patch.setattr(ref_module, "Reply", partial(CountedReply, world))
        yield
