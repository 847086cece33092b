"""What an operator asks of whoever owns a run: to cancel it, or to take an answer to an ask for permission.

The surfaces' one way, from any process of the project's user. A request goes to the owner, which alone ends
its children; what a dead owner left is ended by recovery.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import msgspec

from custodes.adapters.port import PermissionAnswer
from custodes.store import Connection, Database
from custodes.supervision.asks.permission_table import AskRow, find_ask, open_asks
from custodes.supervision.asks.posted import posted
from custodes.supervision.asks.requests import AnswerAsk, Answered, CancelAsk, Kind
from custodes.supervision.nesting.nested_work import RUN
from custodes.supervision.plans.checkpoints import load_plan_row
from custodes.supervision.record import records
from custodes.supervision.record.clock import now
from custodes.supervision.record.owner_identity import Owner, proven_dead
from custodes.supervision.record.project_file import ProjectFile, overriding
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.run_view import RunView, attempts_seen, runs_of

END_S = 60.0
"""How long the end of what is cancelled is waited for, in seconds: its grace and its proof lie well below."""
TAKEN_S = 5.0
"""How long a living owner may leave a request where it is, in seconds."""


class OperatorError(Exception):
    """It cannot be done: what was asked, what is wrong, what would work."""


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """What each run came to that had not ended; none where all had. ``unanswered`` are the owners (pids) of
    which no end was proven in time."""

    target: str
    runs: tuple[RunView, ...]
    unanswered: tuple[int, ...] = ()


async def asks_in_file(project: Path) -> tuple[AskRow, ...]:
    """The asks that wait for an answer, the oldest first. Changes nothing.

    :raises StoreError: the file cannot be read.
    """
    async with ProjectFile(project) as file:
        return await asks_waiting(file)


async def asks_waiting(file: ProjectFile) -> tuple[AskRow, ...]:
    """The same from a file that is open.

    :raises StoreError: the file cannot be read.
    """
    rows = await file.look(open_asks, list[AskRow]())
    return tuple(row for row in rows if row.deadline > now().wall and not proven_dead(row.owner))


async def answer_in_file(
    project: Path, ask_id: str, answer: PermissionAnswer, by: str, environ: Mapping[str, str] = os.environ
) -> Answered:
    """Answer an ask, through its owner. Asked again, or too late, it says what the answer was.

    :raises OperatorError: there is no such ask, its owner is gone, or a child would answer for itself.
    :raises StoreError: the file cannot be read or written.
    """
    if environ.get(RUN):
        raise OperatorError(
            "an ask for permission is answered at the root: not by a process that a child has started"
        )
    async with overriding(project) as database:
        row = None if database is None else await database.read(partial(find_ask, ask_id=ask_id))
        if database is None or row is None:
            raise OperatorError(
                f"there is no ask '{ask_id}'; `cos runs asks` shows those that wait for an answer"
            )
        if row.answer is None:
            body = AnswerAsk(ask=ask_id, answer=answer, by=by)
            reply = await _through(database, row.owner, "answer", row.run_id, body)
            answered = None if reply is None else msgspec.json.decode(reply, type=Answered | None)
            if answered is not None:
                return answered
            row = await database.read(partial(find_ask, ask_id=ask_id)) or row
        if row.answer is None:
            raise OperatorError(f"the owner of ask '{ask_id}' (pid {row.owner.pid}) does not take an answer")
        return Answered(ask=ask_id, answer=row.answer, by=row.by, first=False)


async def cancel_in_file(
    project: Path, target: str, by: str, environ: Mapping[str, str] = os.environ
) -> Cancelled | None:
    """Cancel a run with all that it started, or every run of a conversation (named by its id, or by the run
    of its plan), and wait for the proof.

    Idempotent: what has ended stays as it is. What a dead owner left is ended as recovery does it. None: no
    run or conversation of that name is on record.

    :raises OperatorError: a child would cancel what is not its own.
    :raises StoreError: the file cannot be read or written.
    """
    async with overriding(project) as database:
        if database is None:
            return None
        if (plan := await database.read(partial(load_plan_row, plan=target))) is not None:
            target = plan.conversation
        found = await _rows(database, target)
        if not found:
            return None
        if (child := environ.get(RUN)) and not await _below(database, target, child):
            raise OperatorError(f"run {child} may cancel what it started itself, and {target} is not that")
        opened = {row.run_id for row in found if row.status == "running"}
        if any(row.status == "running" and proven_dead(row.owner) for row in found):
            await close_dead_owners(database, now())
        whole = found[0].run_id != target
        owners = {row.owner for row in found if whole or row.status == "running"}
        unanswered: list[int] = []

        async def ask(owner: Owner) -> None:
            reply = await _through(database, owner, "cancel", target, CancelAsk(by=by), whole=whole)
            if reply is None:
                unanswered.append(owner.pid)

        async with anyio.create_task_group() as asking:
            for owner in owners:
                if not proven_dead(owner):
                    asking.start_soon(ask, owner)
        after = [row for row in await _rows(database, target) if not whole or row.run_id in opened]
    still = {row.owner.pid for row in after if row.status == "running"}
    return Cancelled(
        target=target,
        runs=runs_of(attempts_seen(after, proven_dead)),
        unanswered=tuple(sorted(still.intersection(unanswered))),
    )


async def _rows(database: Database, target: str) -> list[AttemptRow]:
    of_run = await database.read(partial(records.of_run, run_id=target))
    return of_run or await database.read(partial(records.of_conversation, conversation=target))


async def _below(database: Database, run_id: str, ancestor: str) -> bool:
    async def climb(connection: Connection) -> bool:
        seen: set[str] = set()
        current: str | None = run_id
        while current is not None and current not in seen:
            seen.add(current)
            rows = await records.of_run(connection, current)
            current = rows[0].parent_run if rows else None
            if current == ancestor:
                return True
        return False

    return await database.read(climb)


async def _through(
    database: Database, owner: Owner, kind: Kind, target: str, body: msgspec.Struct, *, whole: bool = False
) -> str | None:
    """The owner's reply, or None where it gives none. ``target`` is a run, or a ``whole`` conversation."""

    async def over() -> bool:
        return not whole and await database.read(partial(records.open_of_run, run_id=target)) is None

    async with posted(database, owner, kind, target, body) as request:
        with anyio.move_on_after(END_S):
            return await request.reply(over, TAKEN_S)
    return None
