"""Asks for permission: what a runtime wants leave for, at whatever depth, is put to the root of its tree.

The host's handler, and whoever answers from another process, are asked at once; the first answer counts. What
nobody has answered by the deadline is denied.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio

from custodes.adapters.port import PermissionAnswer, PermissionAsk
from custodes.policy.settings import Settings, SettingsError
from custodes.store import Connection, Database, StoreError
from custodes.supervision.asks.permission_table import AskRow, close_ask, open_ask
from custodes.supervision.dispatching.job import Emit, Job
from custodes.supervision.events import PermissionAnswered, PermissionAsked
from custodes.supervision.record.owner_identity import this_process

logger = logging.getLogger("custodes.supervision")

WAIT_S = 1.0
"""How long a row may wait for other writers of the file, in seconds; an ask is answered without it, too."""

HOST = "the host"
DEADLINE = "its deadline"

Permissions = Callable[[AskRow], Awaitable[PermissionAnswer]]
"""A host's handler: decides on an ask, in as much time as it has until the deadline; then, or once somebody
else has answered, it is cancelled. What it raises, and an answer that is none, decides nothing."""


class _Open:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.answer: PermissionAnswer = "deny"
        self.by = ""

    def settle(self, answer: PermissionAnswer, by: str) -> bool:
        """Whether this was the first answer."""
        if self.by:
            return False
        self.answer, self.by = answer, by
        self.answered.set()
        return True


class Asks:
    """Those of one host. What it writes can be lost with a file that cannot be written: a row then is late or
    missing, and the answer is what it was."""

    def __init__(self, database: Callable[[], Database], settings: Settings, emit: Emit) -> None:
        self._database = database
        self._settings = settings
        self._emit = emit
        self._open: dict[str, _Open] = {}

    async def ask(self, job: Job, asked: PermissionAsk) -> PermissionAnswer:
        """Put it to whoever decides, and wait. Cancelled, it is closed as denied first."""
        seconds = self._seconds()
        at = time.time()
        row = AskRow(
            id=secrets.token_hex(5),
            run_id=job.run_id,
            conversation=job.conversation,
            role=job.role,
            name=job.work.label,
            depth=job.depth,
            tool=asked.tool,
            detail=asked.detail,
            asked=at,
            deadline=at + seconds,
            owner=this_process(),
        )
        pending = self._open[row.id] = _Open()
        self._tell(PermissionAsked, row, tool=row.tool, detail=row.detail, seconds=seconds, depth=row.depth)
        if not seconds:
            pending.settle("deny", DEADLINE)
        try:
            await self._decide(row, pending, job.family.permissions, anyio.current_time() + seconds)
        finally:
            pending.settle("deny", "the end of its attempt")
            del self._open[row.id]
            self._tell(PermissionAnswered, row, answer=pending.answer, by=pending.by)
            with anyio.CancelScope(shield=True):
                await self._write(
                    partial(close_ask, ask_id=row.id, answer=pending.answer, by=pending.by, at=time.time())
                )
        return pending.answer

    def answer(
        self, ask_id: str, answer: PermissionAnswer, by: str
    ) -> tuple[PermissionAnswer, str, bool] | None:
        """The answer that counts, whose it is, and whether it is this one, the first. None: no such ask is
        open here."""
        pending = self._open.get(ask_id)
        if pending is None:
            return None
        first = pending.settle(answer, by)
        return pending.answer, pending.by, first

    async def _decide(
        self, row: AskRow, pending: _Open, handler: Permissions | None, deadline: float
    ) -> None:
        async with anyio.create_task_group() as asking:
            if handler is not None and not pending.by:
                asking.start_soon(self._put_to, handler, row, pending)
            await self._write(partial(open_ask, row=row))
            with anyio.move_on_after(max(0.0, deadline - anyio.current_time())):
                await pending.answered.wait()
            pending.settle("deny", DEADLINE)
            asking.cancel_scope.cancel()

    async def _put_to(self, handler: Permissions, row: AskRow, pending: _Open) -> None:
        try:
            answer = await handler(row)
        except Exception:
            logger.exception("the handler of permissions raised on an ask of run %s", row.run_id)
            return
        if answer in ("allow", "deny"):
            pending.settle(answer, HOST)
        else:
            logger.error("the handler of permissions answered %r, which is neither allow nor deny", answer)

    def _seconds(self) -> int:
        try:
            return self._settings.read().policy.ask_seconds
        except SettingsError as error:
            logger.warning("an ask for permission is denied at once: %s", error)
            return 0

    def _tell(self, event: type[PermissionAsked | PermissionAnswered], row: AskRow, **fields: object) -> None:
        self._emit(event, row.conversation, row.run_id, ask=row.id, **fields)

    async def _write(self, change: Callable[[Connection], Awaitable[Any]]) -> None:
        try:
            await self._database().write(change, WAIT_S)
        except StoreError as error:
            logger.warning("an ask for permission could not be recorded: %s", error)
