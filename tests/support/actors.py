"""Actors for tests: they do what they are told, and write down what was done to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from custodes.actors import Actor, ChildSpec, Intensity, Message, Restart, handles

AT_ONCE = Intensity(restarts=3, period=5, backoff=0)
"""The default intensity, without a wait before a restart."""


@dataclass(frozen=True, slots=True)
class Add(Message[int]):
    amount: int


@dataclass(frozen=True, slots=True)
class Crash(Message[None]):
    error: BaseException


@dataclass(frozen=True, slots=True)
class Hang(Message[str]):
    """Hangs until cancelled, or until ``until`` is set; then answers ``done``."""

    until: anyio.Event | None = None


@dataclass(frozen=True, slots=True)
class Finish(Message[None]):
    """Ends normally."""


@dataclass(frozen=True, slots=True)
class Unknown(Message[None]):
    """Nobody handles it."""


@dataclass
class Journal:
    """What happened, in order, such as ``start a`` and ``stop a``."""

    lines: list[str] = field(default_factory=list)

    def spec(self, child_id: str, restart: Restart = "permanent", shutdown: float = 5) -> ChildSpec[Worker]:
        return ChildSpec(id=child_id, start=lambda: Worker(self), restart=restart, shutdown=shutdown)

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


class Worker(Actor):
    """Sums up, and does the other things it is told."""

    mailbox_size = 4

    def __init__(self, journal: Journal | None = None) -> None:
        self.journal = journal or Journal()
        self.total = 0

    @property
    def name(self) -> str:
        return self.context.path.rpartition("/")[2]

    async def on_start(self) -> None:
        self.journal.lines.append(f"start {self.name}")

    async def on_stop(self, reason: str) -> None:
        self.journal.lines.append(f"stop {self.name}: {reason}")

    @handles(Add)
    async def add(self, message: Add) -> int:
        self.total += message.amount
        return self.total

    @handles(Crash)
    async def crash(self, message: Crash) -> None:
        raise message.error

    @handles(Hang)
    async def hang(self, message: Hang) -> str:
        if message.until is None:
            await anyio.sleep_forever()
        else:
            await message.until.wait()
        return "done"

    @handles(Finish)
    async def finish(self, message: Finish) -> None:
        self.context.stop()


class Starting(Actor):
    """Its start is what the test makes of it."""

    def __init__(self, on_start: Callable[[], object]) -> None:
        self._on_start = on_start

    async def on_start(self) -> None:
        result = self._on_start()
        if hasattr(result, "__await__"):
            await result
