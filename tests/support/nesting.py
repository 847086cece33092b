"""Children that start work themselves: as acts of a scripted runtime, which are clients like any process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision.budgets.account import Account
from custodes.supervision.nesting.client import Client
from custodes.supervision.record.ids import new_id
from custodes.supervision.work import NO_LIMITS, Budget, Outcome, Work
from support.scripted import Act


async def ask(
    project: Path,
    environment: Mapping[str, str],
    work: Work,
    *,
    run_id: str = "",
    budget: Budget = NO_LIMITS,
) -> Outcome:
    """What a process with these variables does for one piece of work."""
    client = Client(project, environment)
    if client.problem is not None:
        raise AssertionError(client.problem)
    try:
        account = Account.of(budget)
        account.open()
        return await client.ask(run_id or new_id(), work, "", account).perform()
    finally:
        await client.aclose()


def nesting(project: Path, *works: Work, outcomes: list[Outcome]) -> Act:
    """Ask for these one after the other, note their outcomes, and answer with their statuses."""

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        statuses = []
        for work in works:
            outcomes.append(await ask(project, request.environment, work))
            statuses.append(outcomes[-1].status)
        return DispatchResult(text=json.dumps({"summary": " ".join(statuses)}))

    return act
