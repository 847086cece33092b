"""One child of a supervisor: its spec, the incarnation that runs now, and how it comes to its end.

A child outlives its incarnations. It is in one of five states::

    starting ── on_start done ──▸ running ── told to stop ──▸ stopping
        ▲                            │ ended by itself            │
        └──────── restarted ──── waiting ◂── by the strategy ─────┤
                                     └──────── for good ──────────┴──▸ ended

This file changes states and fails messages; what is to follow an incarnation is the owner's decision
(:meth:`Owner.child_over`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import anyio

from .actor import Actor, ActorContext
from .cancellation import ChildEnd, Ending, Outcome
from .child_spec import ChildSpec, Restart
from .envelope import ContextHooks
from .errors import ActorCrashed, ActorStopped, InvalidSpec, StartFailed
from .loop import logger, serve
from .mailbox import Mailbox
from .ref import ActorRef
from .statistics import ActorStatistics, State, SupervisorStatistics


class Subtree(ABC):
    """What a child needs of a supervisor that is its occupant."""

    @abstractmethod
    def adopt(self, child: Child) -> None:
        """Take a place in the tree. :raises InvalidSpec: it has one, or cannot stand as it is."""

    @abstractmethod
    async def serve(self, started: Callable[[], None]) -> None:
        """Run until told to stop. :raises SupervisorFailed: its intensity was exceeded."""

    @abstractmethod
    def request_stop(self, reason: str) -> None: ...

    @abstractmethod
    def statistics(self) -> SupervisorStatistics: ...


class Owner(ABC):
    """What a child needs of its supervisor."""

    @abstractmethod
    def child_over(self, child: Child) -> None:
        """An incarnation's task is at its very end. Called exactly once for each."""

    @abstractmethod
    def child_idle_stopped(self, child: Child) -> None:
        """A child was told to stop for good while it had no incarnation."""

    @property
    @abstractmethod
    def collapsing(self) -> bool:
        """The task group itself was cancelled: by an exception that no supervisor handles, such as ^C."""


class Child:
    __slots__ = (
        "_changed",
        "_cleanup_by",
        "_mailbox",
        "_scope",
        "_start_context",
        "alive",
        "began",
        "crash",
        "dynamic",
        "ending",
        "handled",
        "hooks",
        "incarnation",
        "interrupted",
        "occupant",
        "overran",
        "owner",
        "path",
        "ref",
        "restarts",
        "spec",
        "state",
        "unhandled",
    )

    _scope: anyio.CancelScope

    def __init__(
        self, spec: ChildSpec[Any], owner: Owner, path: str, hooks: ContextHooks | None, *, dynamic: bool
    ) -> None:
        self.spec = spec
        self.owner = owner
        self.path = path
        self.hooks = hooks
        self.dynamic = dynamic
        self.state: State = "starting"
        self.alive = False  # an incarnation of it has a task
        self.ending = Ending()
        self.occupant: Actor | Subtree | None = None
        self.ref: ActorRef | None = None
        self.crash: BaseException | None = None  # of the last incarnation
        self.incarnation = 0
        self.restarts = 0
        self.handled = 0
        self.unhandled = 0
        self.overran = False
        self._mailbox: Mailbox | None = None  # an actor's
        self._start_context = None if hooks is None else hooks.capture()
        self.began = False
        self.interrupted: str | None = None
        self._cleanup_by: float | None = None
        self._changed: anyio.Event | None = None  # made only if somebody waits

    # What a strategy sees of it (strategies.Sibling).
    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def restart(self) -> Restart:
        return self.spec.restart

    # -- Starting

    def prepare(self) -> None:
        """Make the occupant of the next incarnation.

        :raises StartFailed: the start callable raised, or what it returned cannot be a child.
        """
        try:
            occupant = self.spec.start()
            if isinstance(occupant, Actor):
                self._seat(occupant)
            elif isinstance(occupant, Subtree):
                occupant.adopt(self)
            else:
                raise InvalidSpec(  # noqa: TRY301  # told like whatever else goes wrong here
                    self.path,
                    f"start must return an actor or a supervisor, not {type(occupant).__qualname__}",
                )
        except Exception as error:
            raise StartFailed(self.path, "its start callable failed", error) from error
        if self.incarnation:
            self.restarts += 1
        self.incarnation += 1
        self.occupant = occupant
        self.crash = None
        self.alive = True
        self._scope = anyio.CancelScope()
        self.began = False
        self.interrupted = None
        self._cleanup_by = None
        self._enter("starting")

    def _seat(self, actor: Actor) -> None:
        if hasattr(actor, "context"):
            raise InvalidSpec(
                self.path, "start must make a new actor each time; this one has a place already"
            )
        if self._mailbox is None:
            self._mailbox = Mailbox(self.path, actor.mailbox_size)
            self.ref = ActorRef(self, self._mailbox)
        else:
            self._mailbox.reopen(actor.mailbox_size)
        actor.context = ActorContext(self)

    @property
    def starts_at_once(self) -> bool:
        """Whether its start has nothing to wait for."""
        occupant = self.occupant
        return (
            isinstance(occupant, Actor)
            and type(occupant).on_start is Actor.on_start
            and self.stop_reason is None
        )

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
        """The task of one incarnation."""
        try:
            try:
                with self._scope:
                    if self.stop_reason is None:
                        await self._occupy()
            except BaseException as error:  # noqa: BLE001  # raised on where it is none
                self._crashed(error)
            occupant = self.occupant
            if self.began and isinstance(occupant, Actor) and type(occupant).on_stop is not Actor.on_stop:
                await self._run_on_stop(occupant)
        finally:
            self.alive = False
            self.owner.child_over(self)

    async def _occupy(self) -> None:
        occupant = self.occupant
        if isinstance(occupant, Subtree):
            await occupant.serve(self._started)
            return
        assert isinstance(occupant, Actor)
        assert self._mailbox is not None
        if type(occupant).on_start is not Actor.on_start:
            if self.hooks is None:
                await occupant.on_start()
            else:
                with self.hooks.attach(self._start_context):
                    await occupant.on_start()
        self._started()
        await serve(occupant, self, self._mailbox)

    def _started(self) -> None:
        self.began = True
        if self.state == "starting":
            self._enter("running")

    async def _run_on_stop(self, actor: Actor) -> None:
        if self.stop_reason is not None:
            reason = self.stop_reason
        else:
            reason = "normal" if self.crash is None else f"crashed: {type(self.crash).__name__}"
        earlier = self.crash
        try:
            with anyio.CancelScope(deadline=self.cleanup_deadline(), shield=True):
                await actor.on_stop(reason)
        except BaseException as error:  # noqa: BLE001  # raised on where it is no crash
            self._crashed(error)
            if isinstance(earlier, Exception) and isinstance(error, Exception):
                self.crash = ExceptionGroup("a crash, and another in on_stop", [earlier, error])

    def _crashed(self, error: BaseException) -> None:
        """Take ``error`` as this incarnation's crash; raise on what no supervisor may handle.

        A cancellation that nobody of the tree asked for is a crash: with asyncio one can come out of a
        future that somebody else cancelled, or be aimed at this very task.
        """
        if not isinstance(error, Exception):
            if not isinstance(error, anyio.get_cancelled_exc_class()) or self.owner.collapsing:
                self.crash = error
                raise error
            if self.stop_reason is not None:
                return  # one cancellation more does not matter
        self.crash = error
        self._lose_waiting(error, comes_back=self.restart != "temporary")

    # -- Its end

    @property
    def stop_reason(self) -> str | None:
        """Why this incarnation was told to stop, for good or by the strategy; None where it was not."""
        return self.ending.reason or self.interrupted

    def request_stop(self, reason: str) -> None:
        """Tell it to stop for good. Only the first reason counts."""
        if not self.ending.request(reason):
            return
        if self._mailbox is not None:
            self._mailbox.refuse(reason)
            self._mailbox.fail_waiting(lambda: ActorStopped(self.path, reason))
        if self.alive:
            self._halt(reason)
        else:
            self.owner.child_idle_stopped(self)

    def interrupt(self, reason: str) -> None:
        """Stop this incarnation; the strategy decides about a next one."""
        if self.alive and self.stop_reason is None:
            self.interrupted = reason
            self._lose_waiting(None, comes_back=self.restart != "temporary")
            self._halt(reason)

    def _halt(self, reason: str) -> None:
        if self.state == "stopping":
            return
        self._enter("stopping")
        if isinstance(self.occupant, Subtree):
            self.occupant.request_stop(reason)
        else:
            self._cleanup_by = anyio.current_time() + self.spec.shutdown
            self._scope.cancel()

    def leave(self) -> None:
        """End normally after the message in hand."""
        assert self._mailbox is not None
        self._mailbox.leave()
        self._lose_waiting(None, comes_back=self.restart == "permanent")

    def cleanup_deadline(self) -> float:
        """On anyio's clock: ``shutdown`` seconds from the stop, or from the first call where none was asked."""
        if self._cleanup_by is None:
            self._cleanup_by = anyio.current_time() + self.spec.shutdown
        return self._cleanup_by

    def loss(self, error: BaseException | None, *, in_hand: bool) -> Exception:
        """What an asker is told of an incarnation that was lost to ``error``, or to a stop."""
        told = self.stop_reason is not None or self.owner.collapsing
        if error is None or (told and not isinstance(error, Exception)):
            return ActorStopped(self.path, self.stop_reason or "normal")
        return ActorCrashed(self.path, error, in_hand=in_hand)

    def _lose_waiting(self, error: BaseException | None, *, comes_back: bool) -> None:
        if self._mailbox is None:
            return
        if not comes_back:
            self._mailbox.refuse(self.stop_reason or ("normal" if error is None else "crashed"))
        self._mailbox.fail_waiting(lambda: self.loss(error, in_hand=False))

    def wait_for_restart(self) -> None:
        self.occupant = None
        self._enter("waiting")

    def finish(self, outcome: Outcome) -> ChildEnd:
        """The terminal record. What still waits is failed, and nothing more is taken in."""
        self.overran = self._cleanup_by is not None and anyio.current_time() >= self._cleanup_by
        end = ChildEnd(self.path, outcome, self.stop_reason, self.crash, self.overran)
        if self._mailbox is not None:
            self._mailbox.refuse(self.stop_reason or ("normal" if self.crash is None else "crashed"))
            self._mailbox.fail_waiting(lambda: self.loss(self.crash, in_hand=False))
        self.occupant = None
        self._enter("ended")
        self.ending.reach(end)
        return end

    def revive(self) -> None:
        """A transient child that had completed is started again by the strategy: a new life, a new end."""
        self.ending = Ending()

    async def wait_over(self) -> None:
        """Wait until no incarnation of it runs."""
        while self.alive:
            await self._change()

    def warn_overrun(self) -> None:
        logger.warning(
            "%s is still at its clean-up %g s after it was told to stop", self.path, self.spec.shutdown
        )

    def _enter(self, state: State) -> None:
        self.state = state
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    # -- Introspection

    def statistics(self) -> ActorStatistics | SupervisorStatistics:
        if isinstance(self.occupant, Subtree):
            return self.occupant.statistics()
        return ActorStatistics(
            path=self.path,
            state=self.state,
            mailbox_depth=0 if self._mailbox is None else len(self._mailbox),
            mailbox_size=0 if self._mailbox is None else self._mailbox.capacity,
            handled=self.handled,
            unhandled=self.unhandled,
            refused=0 if self._mailbox is None else self._mailbox.refused,
            undelivered=0 if self._mailbox is None else self._mailbox.undelivered,
            restarts=self.restarts,
            overran=self.overran,
        )
