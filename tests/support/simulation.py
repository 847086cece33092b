# ruff: noqa: S311  # chance here must be repeatable, not secret
"""One seed, one life of a supervisor tree: random, virtual in time, and the same again for the same seed.

:func:`simulate` draws a tree and a script from the seed, runs it on trio with a mock clock and seeded
scheduling, and judges the journal afterwards. Whoever takes part writes down what happens to it; the
invariants are checked on the journal alone, by code that shares nothing with the kernel's.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple

import anyio
import pytest
import trio
import trio._core._run as trio_run
import trio.testing

import custodes.actors.executor as executor_module
import custodes.actors.ref as ref_module
from custodes.actors import (
    Actor,
    ActorError,
    ActorStopped,
    ChildSpec,
    Intensity,
    MailboxFull,
    Message,
    StartFailed,
    Supervisor,
    SupervisorFailed,
    UnknownChild,
)
from custodes.actors.actor_child import ActorChild
from custodes.actors.cancellation import Ending
from custodes.actors.child_spec import RESTARTS
from custodes.actors.envelope import Reply
from custodes.actors.intensity import Crash, Verdict, judge
from custodes.actors.loop import logger

PATIENCE = 10_000.0
"""Virtual seconds after which a run counts as hung. Scripts last for seconds."""

Deed = Literal["answer", "crash", "hang", "ignore cancel", "flood", "end"]
DEEDS: tuple[Deed, ...] = ("answer", "answer", "answer", "crash", "hang", "ignore cancel", "flood", "end")


class ScriptedError(Exception):
    """The only crash that is meant."""


@dataclass(frozen=True, slots=True)
class Do(Message[int]):
    """Do a deed for so many virtual seconds. The answer is the serial number."""

    serial: int
    deed: Deed
    seconds: float


class Entry(NamedTuple):
    at: float
    what: Literal["make", "start", "stop", "handle", "stopping"]
    supervisor: int  # its serial number
    child: str  # an id; empty for the supervisor itself
    detail: str = ""


@dataclass
class Judgement:
    at: float
    cause: Exception
    admitted: bool


@dataclass
class World:
    """One run: its journal, and where its parts are numbered."""

    random: random.Random
    serials: Iterator[int] = field(default_factory=lambda: count(1))
    journal: list[Entry] = field(default_factory=list)
    judgements: dict[int, list[Judgement]] = field(default_factory=lambda: defaultdict(list))
    intensities: dict[int, Intensity] = field(default_factory=dict)
    static: dict[int, list[str]] = field(default_factory=dict)
    strategies: dict[int, str] = field(default_factory=dict)
    supervisors: list[Watched] = field(default_factory=list)
    replies: list[CountedReply] = field(default_factory=list)
    failures: list[SupervisorFailed] = field(default_factory=list)
    crashes: list[Exception] = field(default_factory=list)
    first_reasons: dict[int, tuple[Ending, str]] = field(default_factory=dict)
    over: bool = False

    def write(self, what: Any, supervisor: int, child: str = "", detail: str = "") -> None:
        self.journal.append(Entry(trio.current_time(), what, supervisor, child, detail))


class CountedReply(Reply):
    """Counts how often it was answered or failed, whether or not the kernel minds."""

    __slots__ = ("times",)

    def __init__(self, world: World) -> None:
        super().__init__()
        self.times = 0
        world.replies.append(self)

    def answer(self, value: object) -> None:
        self.times += 1
        super().answer(value)

    def fail(self, error: Exception) -> None:
        self.times += 1
        super().fail(error)


class Watched(Supervisor):
    def __init__(self, world: World, children: list[ChildSpec[Any]], **options: Any) -> None:
        super().__init__(children, **options)
        self.world = world
        self.serial = next(world.serials)
        self.stop_noted = False
        world.static[self.serial] = [spec.id for spec in children]
        world.intensities[self.serial] = self._executor.intensity
        world.strategies[self.serial] = self._executor.strategy
        world.supervisors.append(self)
        request_stop = self._executor.request_stop

        def noted(reason: str) -> None:
            if not self.stop_noted:
                self.stop_noted = True
                world.write("stopping", self.serial)
            request_stop(reason)

        self._executor.request_stop = noted  # type: ignore[method-assign]  # every stop goes through it


class Puppet(Actor):
    """Does what its messages say, and writes down its own life."""

    mailbox_size = 3

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(world.random.random())

    @property
    def place(self) -> tuple[int, str]:
        supervisor = self.context.supervisor
        assert isinstance(supervisor, Watched)
        return supervisor.serial, self.context.path.rpartition("/")[2]

    async def on_start(self) -> None:
        chance = self.random.random()
        if chance < 0.3:
            await anyio.sleep(self.random.random())
        if chance < 0.07:
            raise ScriptedError
        self.world.write("start", *self.place)

    async def on_stop(self, reason: str) -> None:
        try:
            if self.random.random() < 0.3:
                await anyio.sleep(self.random.random() * 2)
        finally:
            self.world.write("stop", *self.place, reason)
        if self.random.random() < 0.03:
            raise ScriptedError

    async def receive(self, message: Any) -> int:
        self.world.write("handle", *self.place, str(message.serial))
        match message.deed:
            case "crash":
                if message.seconds < 1:
                    await anyio.sleep(message.seconds)
                raise ScriptedError
            case "hang":
                await anyio.sleep_forever()
            case "ignore cancel":
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(message.seconds)
            case "flood":
                with suppress(MailboxFull, ActorStopped):
                    while True:
                        self.context.ref.tell(Do(next(self.world.serials), "answer", 0))
            case "end":
                self.context.stop()
            case _:
                await anyio.sleep(message.seconds)
        serial: int = message.serial
        return serial


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


class Violation(AssertionError):  # noqa: N818  # it names what happened to an invariant
    """An invariant does not hold."""


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


# -- The invariants


def every_started_child_stopped_exactly_once(world: World) -> None:
    balance: Counter[tuple[int, str]] = Counter()
    for entry in world.journal:
        if entry.what in {"start", "stop"}:
            balance[entry.supervisor, entry.child] += 1 if entry.what == "start" else -1
            if balance[entry.supervisor, entry.child] not in {0, 1}:
                raise Violation(f"two lives of one child at once, or a stop of none: {entry}")
    if any(balance.values()):
        raise Violation(f"started and never stopped: {+balance}")


def start_in_order_and_stop_in_reverse(world: World) -> None:
    """Of the static children. A child may go out of turn by itself, or when a client stops it alone."""
    alive: dict[int, list[str]] = defaultdict(list)
    seen: dict[int, list[str]] = defaultdict(list)
    for entry in world.journal:
        order = world.static[entry.supervisor]
        if entry.child not in order:
            if entry.what == "start" and entry.child:
                alive[entry.supervisor].append(entry.child)
            elif entry.what == "stop":
                alive[entry.supervisor].remove(entry.child)
            continue
        index = order.index(entry.child)
        later = [child for child in alive[entry.supervisor] if child in order[index + 1 :]]
        dynamic = [child for child in alive[entry.supervisor] if child not in order]
        if entry.what == "start":
            if entry.child not in seen[entry.supervisor]:
                seen[entry.supervisor].append(entry.child)
                if later:
                    raise Violation(f"{later} had started before {entry}")
            elif later and world.strategies[entry.supervisor] != "one_for_one":
                raise Violation(f"{later} had been left alive by the plan that restarted {entry}")
            alive[entry.supervisor].append(entry.child)
        elif entry.what == "stop":
            by_itself = entry.detail.startswith(("crashed", "normal", "client"))
            if later and not by_itself:
                raise Violation(f"{later} were still alive at {entry}")
            if dynamic and not by_itself and not entry.detail.startswith("restarted"):
                raise Violation(f"dynamic {dynamic} were still alive at {entry}")
            alive[entry.supervisor].remove(entry.child)


def nothing_is_made_once_a_stop_was_asked_for(world: World) -> None:
    stopping: set[int] = set()
    for entry in world.journal:
        if entry.what == "stopping":
            stopping.add(entry.supervisor)
        elif entry.what == "make" and entry.supervisor in stopping:
            raise Violation(f"made while its supervisor was stopping: {entry}")


def intensity_is_never_exceeded_nor_given_up_early(world: World) -> None:
    for serial, judgements in world.judgements.items():
        intensity = world.intensities[serial]
        causes = [id(judgement.cause) for judgement in judgements]
        if len(set(causes)) != len(causes):
            raise Violation(f"one crash was counted twice by supervisor {serial}")
        for index, judgement in enumerate(judgements):
            recent = sum(judgement.at - earlier.at < intensity.period for earlier in judgements[:index])
            if judgement.admitted != (recent < intensity.restarts):
                raise Violation(f"{recent} of {intensity.restarts} restarts, admitted: {judgement.admitted}")


def every_ask_is_answered_at_most_once_and_handled_at_most_once(world: World) -> None:
    if any(reply.times > 1 for reply in world.replies):
        raise Violation("a message was answered twice")
    handled = Counter(entry.detail for entry in world.journal if entry.what == "handle")
    if any(times > 1 for times in handled.values()):
        raise Violation(f"handled twice: {handled.most_common(1)}")


def the_first_reason_wins(world: World) -> None:
    for ending, reason in world.first_reasons.values():
        if ending.end is None or ending.end.reason != reason:
            raise Violation(f"stopped for {reason!r} first, and ended with {ending.end}")


def every_supervisor_that_failed_says_why(world: World) -> None:
    for failure in world.failures:
        [serial] = [one.serial for one in world.supervisors if one._executor.failure is failure]
        allowed = world.intensities[serial].restarts
        if len(failure.exceptions) != allowed + 1:
            raise Violation(f"{len(failure.exceptions)} causes where {allowed} restarts were allowed")


def only_scripted_crashes_happen(world: World) -> None:
    causes: list[BaseException] = [*world.failures, *world.crashes]
    for supervisor in world.supervisors:
        causes.extend(end.cause for end in supervisor._executor.ends.values() if end.cause is not None)
    while causes:
        cause = causes.pop()
        if isinstance(cause, BaseExceptionGroup):
            causes.extend(cause.exceptions)
        elif isinstance(cause, StartFailed) and cause.__cause__ is not None:
            causes.append(cause.__cause__)
        elif not isinstance(cause, ScriptedError | ActorStopped):
            raise Violation(f"nobody scripted {cause!r}") from cause


def nothing_is_left(world: World) -> None:
    for supervisor in world.supervisors:
        executor = supervisor._executor
        if executor.state == "ended" and any(
            child.ending.end is None for child in executor.children.values()
        ):
            raise Violation(f"{supervisor} left a child without an end")
        if executor.state not in {"ended", "starting"} or executor.cap.alive:
            raise Violation(f"{supervisor} is left, with {executor.cap.alive} dynamic children")


INVARIANTS = (
    every_started_child_stopped_exactly_once,
    start_in_order_and_stop_in_reverse,
    nothing_is_made_once_a_stop_was_asked_for,
    intensity_is_never_exceeded_nor_given_up_early,
    every_ask_is_answered_at_most_once_and_handled_at_most_once,
    the_first_reason_wins,
    every_supervisor_that_failed_says_why,
    only_scripted_crashes_happen,
    nothing_is_left,
)
