"""This process as a client: it was started by a child, and the owner of that does what it asks for.

It writes a request into the project's file and waits for the reply (`requests`). It admits, reserves and
locks nothing itself, so that all that a child starts stays in its parent's tree, ledger, slots and trace.
"""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from custodes.adapters.port import Failure, Usage
from custodes.paths import absent
from custodes.policy.roles import ROLE_DEFAULTS, is_role
from custodes.policy.trigger import complexity_of
from custodes.store import Database, StoreError, json_text
from custodes.supervision.asks.posted import Posted
from custodes.supervision.asks.requests import Request, prove
from custodes.supervision.budgets.account import Account
from custodes.supervision.dispatching.slots import Slots
from custodes.supervision.nesting.nested_work import PROJECT, RUN, TOKEN, VARIABLES, NestedWork
from custodes.supervision.outcomes import cancelled, refused
from custodes.supervision.record import records
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.refusal import budget_refusal
from custodes.supervision.work import Outcome, Refusal, RefusalCategory, Work

logger = logging.getLogger("custodes.supervision")

END_S = 60.0
"""How long the end of withdrawn work is waited for, in seconds: its grace and its proof lie well below."""

_UNSET = f"; unset {', '.join(VARIABLES)} to start work of its own"


class Client:
    """Of the attempt that the variables name. ``problem`` is why nothing can be asked for; else None."""

    def __init__(self, project: Path, environ: Mapping[str, str]) -> None:
        self.run_id: str = environ[RUN]
        self.token: str = environ.get(TOKEN, "")
        self.conversation = ""
        """The id of the owner's conversation, which all of it belongs to; known once something was asked."""
        self.problem: Refusal | None = _problem(project, environ)
        self._path = project / DATABASE
        self._database: Database | None = None
        self._opening = anyio.Lock()

    @classmethod
    def of_this_process(cls, project: Path) -> Client | None:
        """None: no child has started this process."""
        return cls(project, os.environ) if os.environ.get(RUN) else None

    def ask(self, run_id: str, work: Work, session: str, account: Account) -> Ask:
        """``account`` is that of this process's own fan-out, which narrows what the owner allows: the levels
        of children, the wall seconds, and what tokens and USD its outcomes say that they used."""
        depth = account.ledger.budget.depth
        work = msgspec.structs.replace(work, complexity=complexity_of(work.complexity))
        nested = NestedWork(work=work, session=session, below=None if depth is None else depth - 1)
        return Ask(self, run_id, nested, account)

    async def database(self) -> Database:
        """:raises StoreError: it cannot be opened."""
        async with self._opening:
            if self._database is None:
                self._database = await Database.open(self._path, MIGRATIONS)
            return self._database

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.aclose()


class Ask:
    """One piece of work that the owner is asked for. ``outcome`` is what it has come to."""

    def __init__(self, client: Client, run_id: str, nested: NestedWork, account: Account) -> None:
        self.outcome: Outcome = cancelled(run_id, nested.work)
        self._client = client
        self._run_id = run_id
        self._nested = nested
        self._account = account

    async def perform(self, slots: Slots | None = None) -> Outcome:
        """Ask, once there is a slot, and wait for the end. Cancelled, the work is withdrawn, and its end is
        waited for (within :data:`END_S`) before the cancel goes on.

        A dead owner has started nothing of what it had not taken. Of mutable work that it had, the outcome is
        unknown; it is never asked for again.
        """
        try:
            if slots is None:
                await self._ask()
            else:
                await slots.take()
                try:
                    await self._ask()
                finally:
                    slots.give_back()
        finally:
            unused = not self.outcome.attempts and self.outcome.status != "unknown"
            self._account.settle(self._run_id, self._usage(), unused=unused)
        return self.outcome

    def _usage(self) -> Usage | None:
        """What all attempts of it together reported; None where none did."""
        from custodes.adapters.native import added  # which loads what runs programs; a root needs no sum

        told = [attempt.usage for attempt in self.outcome.attempts if attempt.usage is not None]
        return functools.reduce(added, told) if told else None

    async def _ask(self) -> None:
        if (late := self._account.may_start()) is not None:
            self.outcome = refused(self._run_id, self._nested.work, budget_refusal(late, None))
            return
        try:
            database = await self._client.database()
            posted = await self._posted(database)
        except StoreError as error:
            self._refuse("unavailable", f"the owner of this work cannot be asked: {error}")
            return
        if posted is not None:
            await self._wait(database, posted)

    async def _posted(self, database: Database) -> Posted | None:
        """The request, written; None where there is nothing to wait for."""
        client, body = self._client, json_text(self._nested)
        parent = await database.read(partial(records.open_of_run, run_id=client.run_id))
        if parent is None:
            reason = f"the run that this process works for ({RUN}={client.run_id}) has ended{_UNSET}"
            self._refuse("unavailable", reason)
            return None
        client.conversation = parent.conversation
        request = Request(
            id=self._run_id,
            kind="dispatch",
            run_id=client.run_id,
            owner=parent.owner,
            client=this_process(),
            proof=prove(client.token, self._run_id, client.run_id, body),
            body=body,
            asked=time.time(),
        )
        posted = Posted(database, request)
        if not await posted.write():
            self._refuse("invalid", f"the id {self._run_id} was used for other work already")
            return None
        return posted

    async def _wait(self, database: Database, posted: Posted) -> None:
        async def over() -> bool:
            return await database.read(partial(records.open_of_run, run_id=self._client.run_id)) is None

        try:
            self._end(posted, await posted.reply(over))
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(END_S):
                try:
                    if not await posted.taken_back() and (reply := await posted.reply(over)) is not None:
                        self._end(posted, reply)
                except StoreError as error:
                    logger.warning("nested run %s could not be withdrawn: %s", self._run_id, error)
            raise
        except StoreError as error:
            self._lose(posted, f"the owner of this work cannot be asked: {error}")

    def _end(self, posted: Posted, reply: str | None) -> None:
        pid = posted.request.owner.pid
        if reply is not None:
            try:
                outcome = msgspec.json.decode(reply, type=Outcome)
                work = self._nested.work  # an owner that lost a request no longer knows what was asked
                self.outcome = msgspec.structs.replace(outcome, role=work.role, name=work.label)
            except msgspec.DecodeError as error:  # the owner runs another version
                self._lose(posted, f"the owner's reply cannot be read here: {error}")
        elif posted.dead:
            self._lose(posted, f"the owner of this work (pid {pid}) died")
        elif posted.gone:
            self._lose(posted, f"the run that this process works for ({self._client.run_id}) has ended")
        else:
            reason = f"the owner of this work (pid {pid}) did not take it; nothing was started"
            self._refuse("unavailable", reason)

    def _lose(self, posted: Posted, why: str) -> None:
        """There will be no answer. What a dead owner had not taken has not begun."""
        if posted.status == "asked" and posted.dead:
            self._refuse("unavailable", f"{why}; nothing was started")
        elif not self._mutable:
            self._refuse("unavailable", f"{why}; how far it came is not known")
        else:
            reason = f"{why}; what it changed is not known"
            failure = Failure(category="provider", reason=reason, outcome="unknown", accepted=True)
            self.outcome = msgspec.structs.replace(self.outcome, status="unknown", failure=failure)

    @property
    def _mutable(self) -> bool:
        work = self._nested.work
        if work.mutable is None:
            return not is_role(work.role) or ROLE_DEFAULTS[work.role].mutable
        return work.mutable

    def _refuse(self, category: RefusalCategory, reason: str) -> None:
        refusal = Refusal(category=category, reason=reason)
        self.outcome = refused(self._run_id, self._nested.work, refusal)


def _problem(project: Path, environ: Mapping[str, str]) -> Refusal | None:
    """What makes these variables no way to an owner of this project."""
    theirs = environ.get(PROJECT, "")
    missing = [name for name in (TOKEN, PROJECT) if not environ.get(name)]
    reason = ""
    category: Literal["auth", "invalid", "unavailable"] = "unavailable"
    if missing:
        category = "auth"
        reason = f"this process works for run {environ[RUN]} ({RUN}), but {missing[0]} is not set{_UNSET}"
    elif Path(os.path.realpath(theirs)) != project:
        category = "invalid"
        reason = (
            f"this process works for the project {theirs} ({PROJECT}), and may not start work in {project}, "
            "past its parent's budget; work for that project would do"
        )
    elif absent(project / DATABASE):
        reason = f"{project / DATABASE} is not there, which the run {environ[RUN]} ({RUN}) stands in{_UNSET}"
    return Refusal(category=category, reason=reason) if reason else None
