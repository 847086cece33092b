"""The outcomes of work that no runtime of ours was called for, and what every outcome says of itself."""

from __future__ import annotations

import logging
import time
from typing import Any

import anyio
import msgspec

from custodes.actors import ActorError, ActorRef
from custodes.adapters.port import Failure
from custodes.policy.explain import Estimate
from custodes.policy.roles import Role
from custodes.policy.routing import Route
from custodes.supervision.pools.admission import Record
from custodes.supervision.record.records import Group, refused_row
from custodes.supervision.work import Attempt, Outcome, Refusal, Work
from custodes.telemetry import Lineage, SpanHandle, envelope

logger = logging.getLogger("custodes.supervision")


def refused(run_id: str, work: Work, refusal: Refusal) -> Outcome:
    return Outcome(run_id=run_id, role=work.role, name=work.label, status="refused", refusal=refusal)


def proposed(run_id: str, work: Work, route: Route, estimate: Estimate | None) -> Outcome:
    """A dry run: the route it would have taken, what that is reckoned at, and nothing spent (seed 000,
    ``suggest``)."""
    return Outcome(
        run_id=run_id,
        role=work.role,
        name=work.label,
        status="skipped",
        output_json={
            "proposed_route": msgspec.to_builtins(route),
            "estimate": msgspec.to_builtins(estimate),
        },
    )


def cancelled(run_id: str, work: Work) -> Outcome:
    """Cancelled before anything of it had begun."""
    return Outcome(run_id=run_id, role=work.role, name=work.label, status="cancelled")


def host_failed(run_id: str, work: Work, error: Exception) -> Outcome:
    """The host's own dispatch raised: its exception is in ``native``, untouched."""
    failure = Failure(category="provider", reason=f"the host's own dispatch raised {type(error).__name__}")
    return Outcome(
        run_id=run_id, role=work.role, name=work.label, status="failed", failure=failure, native=error
    )


def metadata_of(role: Role, provider: str, attempt: Attempt) -> dict[str, Any]:
    """The identity and health decision of the attempt that an outcome stands on."""
    failure = attempt.failure
    found: dict[str, Any] = envelope(
        role=role,
        provider=provider,
        adapter=attempt.adapter,
        model=attempt.served_model or attempt.model,
        pool=attempt.pool,
        health_state=attempt.health_state,
        health_probe=attempt.health_probe,
        category=None if failure is None else failure.category,
        retry_after_s=None if failure is None else failure.retry_after_s,
    )
    if attempt.model_mismatch:
        found["model_mismatch"] = True
    if attempt.native_thread_id is not None:
        found["native_thread_id"] = attempt.native_thread_id
    return found


def error_type(outcome: Outcome) -> str | None:
    """What a span of this outcome is marked with; None for one that ended well."""
    if outcome.status in ("done", "skipped"):
        return None
    if outcome.refusal is not None:
        return outcome.refusal.category
    return outcome.failure.category if outcome.failure is not None else outcome.status


async def record_child(
    health: ActorRef,
    conversation: str,
    outcome: Outcome,
    parent_run: str | None,
    fan_out: Group | None,
    span: SpanHandle,
) -> None:
    """Write the row of a child of which nothing ran, as :func:`record_unrun`, and end its span as it went."""
    await record_unrun(
        health,
        conversation,
        outcome,
        mutable=False,
        parent_run=parent_run,
        fan_out=fan_out,
        trace=span.lineage(),
    )
    span.end(error_type=error_type(outcome))


async def record_unrun(
    health: ActorRef,
    conversation: str,
    outcome: Outcome,
    *,
    mutable: bool,
    number: int | None = None,
    parent_run: str | None = None,
    fan_out: Group | None = None,
    trace: Lineage | None = None,
) -> None:
    """Write the row of work that was refused or skipped. A store that cannot is no reason to fail it.

    Shielded: a cancel must not leave an outcome that is another than its row's.
    """
    row = refused_row(
        conversation,
        outcome,
        time.time(),
        number=number,
        mutable=mutable,
        parent_run=parent_run,
        fan_out=fan_out,
        trace=trace,
    )
    try:
        with anyio.CancelScope(shield=True):
            await health.ask(Record(row))
    except ActorError as error:
        logger.warning("no row was written for run %s: %s", outcome.run_id, error)
