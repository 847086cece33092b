"""A child that is an actor: its mailbox and ref outlive its incarnations, its scope does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from .actor import Actor, ActorContext
from .child import Child, Owner
from .child_spec import ChildSpec
from .envelope import ContextHooks
from .errors import ActorCrashed, ActorStopped, InvalidSpec
from .loop import logger, serve
from .mailbox import Mailbox
from .ref import ActorRef
from .statistics import ActorStatistics


class ActorChild(Child):
    __slots__ = (
        "_actor",
        "_cleanup_by",
        "_overran",
        "_start_context",
        "handled",
        "hooks",
        "mailbox",
        "unhandled",
    )

    def __init__(
        self,
        spec: ChildSpec[Any],
        owner: Owner,
        path: str,
        first: Actor,
        hooks: ContextHooks | None,
        *,
        dynamic: bool,
    ) -> None:
        super().__init__(spec, owner, path, dynamic=dynamic)
        self._actor: Actor | None = None
        self._cleanup_by: float | None = None  # on anyio's clock, once it was told to stop
        self._overran = False
        self.hooks: ContextHooks | None = hooks
        self.handled: int = 0
        self.unhandled: int = 0
        self.mailbox: Mailbox = Mailbox(path, first.mailbox_size)
        self._start_context = None if hooks is None else hooks.capture()

    @property
    def ref(self) -> ActorRef:
        """Made anew each time: kept here, it would be a cycle, which nobody frees but the collector."""
        return ActorRef(self)

    def seat(self, occupant: object) -> None:
        if not isinstance(occupant, Actor):
            raise InvalidSpec(self.path, f"start must return an actor, not {type(occupant).__qualname__}")
        if hasattr(occupant, "context"):
            raise InvalidSpec(
                self.path, "start must make a new actor each time; this one has a place already"
            )
        occupant.context = ActorContext(self)
        self._actor = occupant
        self._cleanup_by = None
        self._overran = False
        self.mailbox.reopen(occupant.mailbox_size)

    @property
    def starts_at_once(self) -> bool:
        return type(self._actor).on_start is Actor.on_start if self._actor is not None else False

    async def occupy(self) -> None:
        actor = self._actor
        if actor is None:
            raise RuntimeError(f"{self.path} was not prepared")
        if type(actor).on_start is Actor.on_start:
            pass
        elif self.hooks is None:
            await actor.on_start()
        else:
            with self.hooks.attach(self._start_context):
                await actor.on_start()
        self.begun()
        await serve(actor, self)

    async def clean_up(self) -> None:
        actor = self._actor
        if actor is None or type(actor).on_stop is Actor.on_stop:
            return
        reason = self.stop_reason
        if reason is None:
            reason = "normal" if self.crash is None else f"crashed: {type(self.crash).__name__}"
        with self.cleanup():
            await actor.on_stop(reason)

    @contextmanager
    def cleanup(self) -> Iterator[anyio.CancelScope]:
        """Shielded, until ``shutdown`` seconds after the stop (after now, where none was asked for)."""
        by = anyio.current_time() + self.spec.shutdown if self._cleanup_by is None else self._cleanup_by
        scope = anyio.CancelScope(deadline=by, shield=True)
        try:
            with scope:
                yield scope
        finally:
            self._overran = self._overran or scope.cancelled_caught

    def outlived_bound(self) -> None:
        """It was told to stop, and is not over though its bound has passed."""
        self._overran = True
        logger.warning("%s is still at its clean-up, %g s after its stop", self.path, self.spec.shutdown)

    @property
    def overran(self) -> bool:
        return self._overran

    def halt(self, reason: str, now: float) -> None:  # noqa: ARG002  # on_stop is told it later
        self._cleanup_by = now + self.spec.shutdown
        if not (self.dynamic and self.owner.sweeping):
            self.task.cancel()

    def leave(self) -> None:
        """End normally after the message in hand."""
        self.mailbox.leave()
        self.fail_waiting(for_good=self.restart != "permanent")

    def vacate(self) -> None:
        self._actor = None

    def loss(self, error: BaseException | None, *, in_hand: bool) -> Exception:
        """What an asker is told of an incarnation that was lost to ``error``, or to a stop."""
        cancelled = error is not None and not isinstance(error, Exception)
        if error is None or (cancelled and self.stop_reason is not None):
            return ActorStopped(self.path, self.stop_reason or "normal")
        return ActorCrashed(self.path, error, in_hand=in_hand)

    def fail_waiting(self, *, for_good: bool) -> None:
        if for_good:
            self.mailbox.refuse(self.stop_reason or ("normal" if self.crash is None else "crashed"))
        if self.mailbox:
            self.mailbox.fail_waiting(lambda: self.loss(self.crash, in_hand=False))

    def statistics(self) -> ActorStatistics:
        return ActorStatistics(
            path=self.path,
            state=self.state,
            mailbox_depth=len(self.mailbox),
            mailbox_size=self.mailbox.capacity,
            handled=self.handled,
            unhandled=self.unhandled,
            refused=self.mailbox.refused,
            undelivered=self.mailbox.undelivered,
            restarts=self.restarts,
            overran=self.overran,
        )
