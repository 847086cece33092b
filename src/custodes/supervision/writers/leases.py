"""A scope for a turn of mutable work: this host's own line first, then the line of all processes."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass

import anyio

from custodes.actors import ActorError, ActorRef
from custodes.store import Database, StoreError, StoreLocked
from custodes.supervision.record.clock import now
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.work import RefusalCategory
from custodes.supervision.writers.lease import orphaned
from custodes.supervision.writers.lease_fold import Held, Release, Take
from custodes.supervision.writers.line import Line
from custodes.supervision.writers.scopes import Scope, ScopeOutsideError

logger = logging.getLogger("custodes.scopes")

POLL_S = (0.02, 0.25)
"""The first and the longest pause between two asks for a scope that another process holds, in seconds."""
RECOVERY_S = 2.0
"""Between two tries to end what an orphaned lease left running, in seconds."""
RELEASE_BOUND_S = 5.0
"""How long a release may wait for the store, in seconds; then it is still written, but nobody waits."""


class ScopeRefusedError(Exception):
    """The scope cannot be had by waiting; its words say why, and what would work."""

    def __init__(self, category: RefusalCategory, reason: str) -> None:
        super().__init__(reason)
        self.category: RefusalCategory = category


@dataclass(slots=True, eq=False)
class Hold:
    """One turn's hold on its scope. ``id`` and ``number`` are its lease's, None where nothing is held.

    Set ``left`` to what could not be proven gone: the scope then stays held. ``lost`` says, once the turn is
    over, why it may not have been its own until then; "" where it was.
    """

    id: str | None = None
    number: int | None = None
    left: tuple[str, ...] = ()
    lost: str = ""


class Leases:
    """What every dispatch of one host asks for its scope."""

    def __init__(self, actor: ActorRef, database: Callable[[], Database]) -> None:
        self._actor = actor
        self._database = database
        self._line = Line()
        self._recovering = anyio.Lock()
        self._next_recovery = float("-inf")

    def hold(
        self, run_id: str, scope: Scope, on_wait: Callable[[], None], parent_run: str | None = None
    ) -> AbstractAsyncContextManager[Hold]:
        """Hold the scope for the block; read-only work holds nothing, and waits for nothing.

        ``parent_run`` is the nearest run above that holds a scope, where this is nested work of it.

        ``on_wait`` is called once where it has to wait. Cancelled while waiting, both places in line are
        given up; cancelled while holding, it is released after the block's own end.

        :raises ScopeRefusedError: the store cannot be asked, or it wants more than the work it was started by
            may write.
        """
        if not scope.places:
            return nullcontext(Hold())
        return self._held(run_id, scope, on_wait, parent_run)

    @asynccontextmanager
    async def _held(
        self, run_id: str, scope: Scope, on_wait: Callable[[], None], parent_run: str | None
    ) -> AsyncIterator[Hold]:
        waits = self._line.would_wait(scope, run_id, parent_run)
        if waits:
            on_wait()
        async with AsyncExitStack() as line:
            try:
                await line.enter_async_context(self._line.hold(scope, run_id, parent_run))
            except ScopeOutsideError as error:
                raise ScopeRefusedError("invalid", str(error)) from None
            take = Take(run_id=run_id, scope=scope, parent_run=parent_run)
            hold = Hold(id=take.id)
            try:
                hold.number = await self._taken(take, None if waits else on_wait)
                yield hold
            finally:
                with anyio.CancelScope(shield=True):
                    await self._release(take, hold)

    async def _taken(self, take: Take, on_wait: Callable[[], None] | None) -> int:
        pause, longest = POLL_S
        in_line = False
        while True:
            try:
                answer = await self._actor.ask(take)
            except ActorError as error:
                raise ScopeRefusedError("unavailable", f"its scope cannot be leased: {error}") from None
            if isinstance(answer, Held):
                return answer.number
            if isinstance(answer, StoreLocked) and in_line:
                continue  # it has waited already, and keeps its place
            if isinstance(answer, StoreError):
                raise ScopeRefusedError("unavailable", f"its scope cannot be leased: {answer}")
            in_line = True
            if answer.for_ever:
                raise ScopeRefusedError("invalid", str(ScopeOutsideError()))
            if on_wait is not None:
                on_wait()
                on_wait = None
            if any(orphaned(lease) for lease in answer.blocking):
                await self._recover()
            # Jitter, so that processes which wait for the same scope do not wake as one.
            await anyio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            pause = min(pause * 1.5, longest)

    async def _recover(self) -> None:
        """End what a dead owner left, and with it its leases, where that can be proven."""
        async with self._recovering:
            if anyio.current_time() < self._next_recovery:
                return
            try:
                await close_dead_owners(self._database(), now())
            except StoreError as error:
                logger.warning("what a dead owner left could not be recovered: %s", error)
            self._next_recovery = anyio.current_time() + RECOVERY_S

    async def _release(self, take: Take, hold: Hold) -> None:
        release = Release(id=take.id, left=hold.left)
        why = f"the project's file did not answer within {RELEASE_BOUND_S:g} s"
        answer: bool | StoreError | None = None
        try:
            with anyio.move_on_after(RELEASE_BOUND_S):
                answer = await self._actor.ask(release)
            if answer is None:
                self._tell(release)
        except ActorError as error:
            why = str(error)
            self._tell(release)
        except BaseException:
            self._tell(release)  # a native cancel pierces the shield; only the first of the two counts
            raise
        if hold.number is not None and answer is not True:
            if answer is False:
                why = "it was released or taken over meanwhile"
            elif answer is not None:
                why = str(answer)
            hold.lost = f"whether its scope was its own to the end is not proven: {why}"
            logger.error("run %s: %s", take.run_id, hold.lost)

    def _tell(self, release: Release) -> None:
        try:
            self._actor.tell(release)
        except ActorError:
            logger.exception("`cos scopes list` shows what is still held")
