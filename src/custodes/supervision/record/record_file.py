"""What ran in a project, straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from custodes.store import Connection
from custodes.supervision.budgets.fan_out_table import FanOutRow, fan_outs_of
from custodes.supervision.budgets.fan_out_view import FanOutAccount, account_of
from custodes.supervision.plans.plan_view import (
    PlanAccount,
    PlanView,
    accounts_of,
    view_latest_plans,
    view_plan,
)
from custodes.supervision.record import records
from custodes.supervision.record.owner_identity import proven_dead
from custodes.supervision.record.project_file import ProjectFile
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.run_view import AttemptView, attempts_seen


class RecordFile(ProjectFile):
    """All of it is empty where the project has no database yet.

    Every method raises :exc:`~custodes.store.StoreError` where the file cannot be read.
    """

    async def conversation(self, conversation: str) -> tuple[AttemptView, ...]:
        """Every attempt, refusal and dry run of a conversation, oldest first."""
        return await self._seen(partial(records.of_conversation, conversation=conversation))

    async def run(self, run_id: str) -> tuple[AttemptView, ...]:
        return await self._seen(partial(records.of_run, run_id=run_id))

    async def latest(self, runs: int) -> tuple[AttemptView, ...]:
        """Every row of the newest runs, oldest first."""
        return await self._seen(partial(records.latest_runs, limit=runs))

    async def latest_plans(self, runs: int) -> tuple[PlanView, ...]:
        """Newest first."""
        return tuple(await self.look(partial(view_latest_plans, limit=runs), list[PlanView]()))

    async def plan(self, run: str) -> PlanView | None:
        """None where there is no plan run of this id."""
        return await self.look(partial(view_plan, run=run), None)

    async def plan_accounts(self, conversation: str, at: float) -> tuple[PlanAccount, ...]:
        """The plans of a conversation with their budgets, the oldest first; ``at`` is wall seconds."""
        return tuple(
            await self.look(partial(accounts_of, conversation=conversation, at=at), list[PlanAccount]())
        )

    async def fan_outs(self, conversation: str, at: float) -> tuple[FanOutAccount, ...]:
        """The fan-outs of a conversation that have a budget, the oldest first; ``at`` is wall seconds."""
        rows = await self.look(partial(fan_outs_of, conversation=conversation), list[FanOutRow]())
        return tuple(account_of(row, proven_dead, at) for row in rows)

    async def matching(self, text: str, runs: int) -> tuple[AttemptView, ...]:
        """Every row of the newest runs of which one row has each word of the text somewhere: in an id, role,
        name, adapter, model, status, category or native session. Oldest first."""
        return await self._seen(partial(records.matching_runs, words=text.split(), limit=runs))

    async def _seen(
        self, query: Callable[[Connection], Awaitable[list[AttemptRow]]]
    ) -> tuple[AttemptView, ...]:
        return attempts_seen(await self.look(query, []), proven_dead)
