"""A job's first reservation, made before it waits for a slot: so it is those asked for first that get what
there is."""

from __future__ import annotations

from custodes.policy.history import Record
from custodes.supervision.budgets.account import Account
from custodes.supervision.dispatching.job import Frozen, Job
from custodes.supervision.refusal import budget_refusal
from custodes.supervision.work import Refusal, Shortfall


def reserved(account: Account, job: Job, records: tuple[Record, ...]) -> Job | Refusal:
    """The job, informed by past attempts, with what its first attempt needs set aside; or why that is not
    there."""
    job = job.informed(records)
    if not account.metered:
        return job
    account.records = records
    frozen = job.question.catalog
    described = [(route, frozen.find(route.adapter)) for route in job.candidates]
    routes = [(route, adapter.descriptor) for route, adapter in described if adapter is not None]
    affordable, short = account.reserve(job.run_id, job.work, routes)
    if affordable or not short:
        return job
    others = (*job.passed_over, *map(str, short[1:]))
    return budget_refusal(short[0], job.candidates[0], others)


def unless_short(frozen: Frozen, short: Shortfall | None) -> Frozen:
    """What was frozen, or its refusal where a limit of the budget is met."""
    if short is None:
        return frozen
    return budget_refusal(
        short, frozen.candidates[0] if isinstance(frozen, Job) and frozen.candidates else None
    )
