"""The nested work of one running attempt: what its own processes ask for, done beside its siblings."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from custodes.store import Database, StoreError
from custodes.supervision.asks import requests
from custodes.supervision.dispatching.job import Job, Under
from custodes.supervision.dispatching.slots import Places
from custodes.supervision.nesting.nested_work import PROJECT, RUN, TOKEN, NestedWork
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.work import Outcome
from custodes.telemetry import SpanHandle

if TYPE_CHECKING:  # a child's attempts each have a nest
    from custodes.supervision.child import Child

logger = logging.getLogger("custodes.supervision")

WAIT_S = 5.0
"""How long the end of an attempt waits to forget its requests, in seconds."""

Reply = Callable[[Outcome], Coroutine[Any, Any, None]]
"""Hands an outcome to whoever asked; the first counts. It never raises but under cancellation."""


@dataclass(slots=True, eq=False)
class _Asked:
    child: Child
    reply: Reply
    withdrawn: bool = False


@dataclass(slots=True, eq=False)
class Nest:
    """Made for one attempt, and closed at its end.

    While a nested piece of work is pending, the attempt has given its slots up: it waits. The reply to the
    last pending one is held until it has them again. Earlier ones go out at once: two asks of one attempt
    could each wait for the other's end, if both needed the slots.
    """

    job: Job
    places: Places
    span: SpanHandle
    database: Callable[[], Database]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    closed: bool = False
    _asked: dict[str, _Asked] = field(default_factory=dict)
    _used: bool = False
    _pending: int = 0
    _return: anyio.CancelScope | None = None
    _all_answered: anyio.Event | None = None

    def environment(self, project: Path) -> dict[str, str]:
        """What the attempt's processes carry, so that what they start joins this tree."""
        return {RUN: self.job.run_id, TOKEN: self.token, PROJECT: str(project)}

    @property
    def used(self) -> bool:
        """Whether anything was asked for here."""
        return self._used

    def knows(self, run_id: str) -> bool:
        """Whether this nested run was asked for here and is not answered yet."""
        return run_id in self._asked

    def start(self, run_id: str, ask: NestedWork, client: Owner, reply: Reply) -> None:
        """Begin it, for ``client``, while that lives. The reply comes once, whatever way it ends."""
        job = self.job
        deepest = [] if job.deepest is None else [job.deepest]
        if ask.below is not None:
            deepest.append(job.depth + 1 + ask.below)
        under = Under(
            run_id=job.run_id,
            depth=job.depth,
            deepest=min(deepest, default=None),
            writer=job.run_id if job.mutable else job.writer,
            span=self.span,
            client=client,
        )
        asked = _Asked(job.family.nest(under, run_id, ask.work, ask.session), reply)
        self._asked[run_id] = asked
        self._used = True
        self._pending += 1
        self.places.give_back()
        job.family.start_soon(self._see_through, run_id, asked)

    def withdraw(self, run_id: str, reason: str) -> None:
        """Nobody waits for it any more: end it. Idempotent."""
        asked = self._asked.get(run_id)
        if asked is not None and not asked.withdrawn:
            asked.withdrawn = True
            self.job.family.start_soon(asked.child.cancel, reason)
            if asked.child.result is not None:  # it has ended, and its reply is held
                self.job.family.start_soon(asked.reply, asked.child.result)

    async def close(self) -> None:
        """The attempt has ended: end what of its nested work still runs, and forget what was asked for.
        Returns once all is answered, though it be cancelled."""
        self.closed = True
        if not self._used:
            return
        with anyio.CancelScope(shield=True):
            if self._asked:
                await self._end_all()
            try:
                await self.database().write(partial(requests.forget_run, run_id=self.job.run_id), WAIT_S)
            except StoreError as error:
                logger.warning("what run %s asked for stands until it is pruned: %s", self.job.run_id, error)

    async def _end_all(self) -> None:
        if self._return is not None:
            self._return.cancel()
        self._all_answered = anyio.Event()
        async with anyio.create_task_group() as ends:
            for asked in tuple(self._asked.values()):
                ends.start_soon(asked.child.cancel, "the work that asked for it has ended")
        await self._all_answered.wait()

    async def _see_through(self, run_id: str, asked: _Asked) -> None:
        try:
            outcome = await asked.child.outcome()
            if asked.withdrawn:  # whoever asked waits for the end alone, not for its turn to go on
                await asked.reply(outcome)
            await self._come_back()
            if not asked.withdrawn:
                await asked.reply(outcome)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await asked.reply(await asked.child.cancel("its fan-out was cancelled"))
            raise
        finally:
            del self._asked[run_id]
            if not self._asked and self._all_answered is not None:
                self._all_answered.set()

    async def _come_back(self) -> None:
        """One less is pending. The last one takes the attempt's slots again, as of a parent that goes on."""
        if self._pending == 1 and not self.closed:
            with anyio.CancelScope() as self._return:
                await self.places.take("returning")
            self._return = None
        self._pending -= 1
        if self._pending:  # another one was asked for while the slots were taken again
            self.places.give_back()
