"""The child: the actor of one piece of work, and the handle its parent holds."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from custodes.actors import Actor, ChildEnd, Message, Supervisor, UnknownChild
from custodes.adapters.port import Failure
from custodes.supervision.dispatching.dispatch import Dispatch
from custodes.supervision.dispatching.job import Job, Services
from custodes.supervision.dispatching.slots import Room
from custodes.supervision.outcomes import cancelled, error_type
from custodes.supervision.work import Outcome, Work
from custodes.telemetry import SpanHandle, attach

logger = logging.getLogger("custodes.supervision")


@dataclass(frozen=True, slots=True)
class Perform(Message[None]):
    """Do the work this child was made for."""


@dataclass(slots=True, eq=False)
class Course:
    """What became of one job: it outlives the actor, which may be gone before anybody asks."""

    job: Job
    outcome: Outcome | None = None

    def at(self, end: ChildEnd) -> Outcome:
        """What it has come to at its actor's end, and what a crash leaves to tell."""
        outcome = self.outcome or cancelled(self.job.run_id, self.job.work)
        if end.outcome != "crashed":
            return outcome
        cause = end.cause
        # Where it was, without what it said: an exception's words may hold a secret.
        where = "".join(traceback.format_tb(cause.__traceback__)) if cause is not None else ""
        logger.error("run %s crashed: %s\n%s", self.job.run_id, type(cause).__name__, where)
        failure = Failure(category="provider", reason=f"the child crashed: {type(cause).__name__}")
        return replace(outcome, status="unknown" if self.job.mutable else "failed", failure=failure)


class ChildActor(Actor):
    """Performs one job, once, and ends. ``room`` is what it runs in: held already, or yet to be taken;
    ``course`` is told what it has come to."""

    def __init__(self, job: Job, services: Services, parent: SpanHandle, room: Room, course: Course) -> None:
        self._job = job
        self._services = services
        self._parent = parent
        self._room = room
        self._course = course

    async def receive(self, message: Perform) -> None:  # noqa: ARG002 - it says only that it is time
        job = self._job
        span = self._services.tracer.child(self._parent, job.role, job.run_id, job.work.label)
        with span, attach(span.context):
            dispatch = Dispatch(job, self._services, span, self._room)
            try:
                self._course.outcome = await dispatch.perform()
            except anyio.get_cancelled_exc_class():
                self._course.outcome = dispatch.outcome("cancelled")
                raise
            if (error := error_type(self._course.outcome)) is not None:
                span.end(error_type=error)
        self.context.stop()


class Child:
    """A parent's handle on one piece of work it has asked for."""

    def __init__(
        self,
        run_id: str,
        work: Work,
        cancel: Callable[[Child, str], Awaitable[None]],
        parent_run: str | None = None,
    ) -> None:
        self.run_id = run_id
        self.work = work
        self.parent_run = parent_run
        """The run whose own processes asked for it; None for a child of the conversation's."""
        self._cancel = cancel
        self._ended: anyio.Event | None = None  # made only if somebody waits
        self._outcome: Outcome | None = None

    async def outcome(self) -> Outcome:
        """Wait for the one outcome. Cancelling the wait does not cancel the child."""
        await anyio.lowlevel.checkpoint()
        while self._outcome is None:
            if self._ended is None:
                self._ended = anyio.Event()
            await self._ended.wait()
        return self._outcome

    async def cancel(self, reason: str = "cancelled by its parent") -> Outcome:
        """End the child and everything it started. Idempotent: each call gets the same answer, which is
        the real outcome where the child had already ended."""
        if self._outcome is None:
            await self._cancel(self, reason)
        return await self.outcome()

    @property
    def result(self) -> Outcome | None:
        """The outcome, or None while there is none."""
        return self._outcome

    def end(self, outcome: Outcome) -> bool:
        """Set the one outcome; the first wins.

        :meta private: for the fan-out that made this handle
        """
        if self._outcome is not None:
            return False
        self._outcome = outcome
        if self._ended is not None:
            self._ended.set()
        return True


async def stop_actor(siblings: Supervisor, run_id: str, reason: str) -> None:
    with suppress(UnknownChild):  # it has ended, and so many others since that nobody remembers
        await siblings.stop_child(run_id, reason)


async def ends_by_itself(reason: str) -> None:
    """The stop of a child whose outcome stands already: whoever cancels it waits for that."""
