"""Going on in the native thread of an earlier run: which thread that is, or why there is none.

Seed 000: the orchestrator's run id and the runtime's native thread id are different id-spaces, and a missing
capability is an explicit ``invalid`` failure, never a quiet success on a downgraded path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from custodes.adapters.descriptor import Descriptor
from custodes.store import Database, StoreError
from custodes.supervision.dispatching.job import Job, Proposal, Resuming, refusal_of
from custodes.supervision.record.records import AttemptRow, of_run
from custodes.supervision.work import Refusal


async def looked_up(
    asked: Resuming, database: Callable[[], Database], descriptors: Mapping[str, Descriptor]
) -> Job | Proposal | Refusal:
    """:func:`resumed`, from what is on record now."""
    try:
        rows = await database().read(partial(of_run, run_id=asked.job.work.resume))
    except StoreError as error:
        return Refusal(category="unavailable", reason=f"the record cannot be read: {error}")
    return resumed(asked, rows, descriptors)


def resumed(
    asked: Resuming, rows: Sequence[AttemptRow], descriptors: Mapping[str, Descriptor]
) -> Job | Proposal | Refusal:
    """The job in the thread of the run that its work names, pinned to that run's adapter and model.

    Nothing stands in for that adapter, whatever the fallback policy: another one does not know the thread.

    :param rows: the attempts of that run, oldest first.
    """
    job, work = asked.job, asked.job.work
    run = work.resume
    if not rows:
        return _invalid(f"there is no run {run!r} on record; `cos runs list` shows those there are")
    if (role := rows[0].role) != work.role:
        return _invalid(
            f"run {run} is a {role}'s, and this work is a {work.role}'s; role {role!r} would work"
        )
    if any(row.status == "running" for row in rows):
        return _invalid(f"run {run} still runs; it can be gone on with once it has ended")
    row = next((row for row in reversed(rows) if row.native_thread_id is not None), None)
    if row is None or row.adapter is None:
        return _invalid(f"run {run} has no native thread: its runtime told of none, or never ran")
    for what, wanted, was in (("adapter", work.adapter, row.adapter), ("model", work.model, row.model or "")):
        if wanted and wanted != was:
            return _invalid(f"run {run} ran on {what} {was!r} and goes on there, not on {wanted!r}")
    descriptor = descriptors.get(row.adapter)
    if descriptor is not None and not descriptor.can("resume"):
        return _invalid(
            f"adapter {row.adapter!r} cannot go on in an earlier thread: 'resume' is not in its capabilities"
        )
    question = replace(
        job.question,
        request=replace(job.question.request, adapter=row.adapter, model=row.model or ""),
        policy=replace(job.question.policy, fallback_policy="fail_closed"),
    )
    resolution = question.resolve()
    if (refusal := refusal_of(resolution)) is not None:
        return refusal
    if asked.dry:
        return Proposal(question=question)
    return replace(job, question=question, thread=row.native_thread_id).routed(resolution)


def _invalid(reason: str) -> Refusal:
    return Refusal(category="invalid", reason=reason)
