"""One child of a supervisor: its spec, the incarnation that runs now, and how it comes to its end.

A child outlives its incarnations. It is in one of five states::

    starting ── on_start done ──▸ running ── told to stop ──▸ stopping
        ▲                            │ ended by itself            │
        └──────── restarted ──── waiting ◂── by the strategy ─────┤
                                     └──────── for good ──────────┴──▸ ended

This file changes states; :mod:`.actor_child` and :mod:`.supervisor_child` say what an incarnation does. What
is to follow it is the owner's decision (:meth:`Owner.child_over`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import anyio
from anyio import TaskHandle
from anyio.abc import TaskGroup

from .cancellation import ChildEnd, Ending, Outcome
from .child_spec import ChildSpec, Restart
from .errors import ActorStopped, StartFailed
from .statistics import ActorStatistics, State, SupervisorStatistics

if TYPE_CHECKING:  # what an owner shows of itself to its actors
    from .supervisor import Supervisor


class Owner(ABC):
    """What a child needs of its supervisor."""

    supervisor: Supervisor
    sweeping: bool
    """It cancels all its dynamic actors with one stroke: a cancel for each takes twice as long."""

    @abstractmethod
    def child_over(self, child: Child) -> None:
        """An incarnation's task is at its very end. Called exactly once for each."""

    @abstractmethod
    def child_idle_stopped(self, child: Child) -> None:
        """A child was told to stop for good while it had no incarnation."""

    @abstractmethod
    def fail(self, error: BaseException, reason: str) -> None:
        """Stop everything for ``reason``, in order, and then raise ``error`` upward."""


class Child(ABC):
    __slots__ = (
        "_changed",
        "alive",
        "awaited",
        "began",
        "crash",
        "dynamic",
        "ending",
        "incarnation",
        "interrupted",
        "owner",
        "path",
        "restarts",
        "spec",
        "state",
        "task",
    )

    task: TaskHandle[None]
    """The present incarnation's. Its own scope is all that a cancel needs."""

    def __init__(self, spec: ChildSpec[Any], owner: Owner, path: str, *, dynamic: bool) -> None:
        self.spec: ChildSpec[Any] = spec
        self.owner: Owner = owner
        self.path: str = path
        self.dynamic: bool = dynamic
        self.state: State = "starting"
        self.ending: Ending = Ending()
        self.awaited: bool = True  # somebody waits for its first start, and hears of its failure
        self.incarnation: int = 0
        self.restarts: int = 0
        # Of the present incarnation, or the last one:
        self.alive: bool = False  # its task is not over
        self.began: bool = False  # its start has succeeded
        self.interrupted: str | None = None  # why the strategy stopped it
        self.crash: BaseException | None = None
        self._changed: anyio.Event | None = None  # made only if somebody waits

    # What a strategy sees of it (strategies.Sibling).
    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def restart(self) -> Restart:
        return self.spec.restart

    # -- What differs between an actor and a supervisor

    @abstractmethod
    def seat(self, occupant: object) -> None:
        """Take in what ``start`` returned. :raises InvalidSpec: it cannot be this child."""

    @abstractmethod
    async def occupy(self) -> None:
        """Run the occupant; call :meth:`begun` once it has started."""

    @abstractmethod
    async def clean_up(self) -> None:
        """Runs last, where the start has succeeded."""

    @abstractmethod
    def halt(self, reason: str, now: float) -> None:
        """Make the occupant end soon; ``now`` is anyio's clock."""

    @abstractmethod
    def fail_waiting(self, *, for_good: bool) -> None:
        """Whoever waits for the occupant is told that it is lost (:attr:`crash`, :attr:`stop_reason`)."""

    @abstractmethod
    def vacate(self) -> None:
        """Let go of the occupant: its incarnation is over."""

    @property
    @abstractmethod
    def starts_at_once(self) -> bool:
        """Whether its start has nothing to wait for."""

    @property
    @abstractmethod
    def overran(self) -> bool:
        """Its clean-up was cut off at its bound, or has outlived it."""

    @abstractmethod
    def statistics(self) -> ActorStatistics | SupervisorStatistics: ...

    # -- Starting

    def prepare(self, occupant: object) -> None:
        """Begin the next incarnation with a new occupant. :raises InvalidSpec: it cannot be this child."""
        self.seat(occupant)
        if self.ending.end is not None:
            self.ending = Ending()  # a transient child that had completed is needed once more
        if self.incarnation:
            self.restarts += 1
        self.incarnation += 1
        self.alive = True
        self.began = False
        self.interrupted = None
        self.crash = None
        self.enter("starting")

    def spawn(self, group: TaskGroup) -> None:
        self.task = group.start_soon(self.live, name=self.path)

    def begun(self) -> None:
        self.began = True
        if self.state == "starting":
            self.enter("running")

    async def wait_started(self) -> None:
        """:raises StartFailed: its ``on_start``, or a child of its own, raised.
        :raises ActorStopped: it was told to stop before it had started.
        """
        while self.state == "starting":
            await self._change()
        if self.began:
            return
        if self.crash is not None:
            raise StartFailed(self.path, "could not start", self.crash)
        raise ActorStopped(self.path, self.stop_reason or "normal")

    # -- One incarnation

    async def live(self) -> None:
        """The task of one incarnation. It raises nothing: a task group would answer with a stampede."""
        try:
            try:
                if self.stop_reason is None:  # a stop may come between the spawn and this first step
                    await self.occupy()
            except BaseException as error:
                self._take_crash(error)
            if self.began:
                earlier = self.crash
                try:
                    await self.clean_up()
                except BaseException as error:
                    self._take_crash(error)
                    if isinstance(earlier, Exception) and isinstance(error, Exception):
                        self.crash = ExceptionGroup("a crash, and another in on_stop", [earlier, error])
        finally:
            self._over()

    def bury(self) -> None:
        """Its task group has closed, and this incarnation has not said that it is over.

        So asyncio's own ``Task.cancel()`` hit its task before the first step, where a coroutine is dropped
        without having run, and nobody is told but the group.
        """
        self.task.coro.close()  # else it complains that it was never awaited
        self._over()

    def _over(self) -> None:
        self.alive = False
        del self.task  # a ref may be kept for long; its task's remains are heavy
        self.vacate()
        self.owner.child_over(self)

    def _take_crash(self, error: BaseException) -> None:
        """Take ``error`` as this incarnation's crash.

        A cancellation that nobody of the tree asked for is a crash: with asyncio one can come out of a
        future that somebody else cancelled, or be aimed at this very task. What no supervisor may handle,
        such as ^C, is no crash of one child: the whole tree stops for it.
        """
        real = _without_cancellations(error)
        if real is None and self.stop_reason is not None:
            return  # told to stop: this is how it ends
        self.crash = real or error
        if real is not None and not isinstance(real, Exception):
            self.owner.fail(real, f"{self.path} raised {type(real).__name__}")
        self.fail_waiting(for_good=self.restart == "temporary")

    # -- Its end

    @property
    def stop_reason(self) -> str | None:
        """Why this incarnation was told to stop, for good or by the strategy; None where it was not."""
        return self.ending.reason or self.interrupted

    def request_stop(self, reason: str, now: float) -> None:
        """Tell it to stop for good. Only the first reason counts."""
        if not self.ending.request(reason):
            return
        self.fail_waiting(for_good=True)
        if self.alive:
            self._halt(reason, now)
        else:
            self.owner.child_idle_stopped(self)

    def interrupt(self, reason: str, now: float) -> None:
        """Stop this incarnation; whether there is a next one is the strategy's matter."""
        if self.alive and self.stop_reason is None:
            self.interrupted = reason
            self.fail_waiting(for_good=self.restart == "temporary")
            self._halt(reason, now)

    def _halt(self, reason: str, now: float) -> None:
        if self.state != "stopping":
            self.enter("stopping")
            self.halt(reason, now)

    def await_restart(self) -> None:
        self.enter("waiting")

    def finish(self, outcome: Outcome) -> ChildEnd:
        """The terminal record."""
        end = ChildEnd(self.path, outcome, self.stop_reason, self.crash, self.overran)
        self.fail_waiting(for_good=True)
        self.enter("ended")
        self.ending.reach(end)
        return end

    async def wait_over(self) -> None:
        """Wait until no incarnation of it runs."""
        while self.alive:
            await self._change()

    def enter(self, state: State) -> None:
        self.state = state
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()


def _without_cancellations(error: BaseException) -> BaseException | None:
    cancelled = anyio.get_cancelled_exc_class()
    if isinstance(error, BaseExceptionGroup):
        return error.split(cancelled)[1]
    return None if isinstance(error, cancelled) else error
