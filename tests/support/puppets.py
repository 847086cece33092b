# ruff: noqa: S311  # chance here must be repeatable, not secret
"""The cast of a simulation: puppets that do what they are told, and the world that they write down."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, NamedTuple

import anyio
import trio
import trio.testing

from custodes.actors import (
    Actor,
    ActorStopped,
    ChildSpec,
    Intensity,
    MailboxFull,
    Message,
    Supervisor,
    SupervisorFailed,
)
from custodes.actors.cancellation import Ending
from custodes.actors.envelope import Reply


class Violation(AssertionError):  # noqa: N818  # it names what happened to an invariant
    """An invariant does not hold."""


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
