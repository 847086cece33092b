"""One attempt: the admitted runtime is called, watched, settled, whatever way it ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from custodes.actors import ActorError
from custodes.adapters.descriptor import Descriptor
from custodes.adapters.port import (
    DispatchRequest,
    DispatchResult,
    Failure,
    Permit,
    Progress,
    Usage,
)
from custodes.adapters.registry import Registry
from custodes.policy.catalog import serves
from custodes.policy.roles import Role
from custodes.policy.routing import Route
from custodes.supervision.dispatching.job import Job, Plain, Services
from custodes.supervision.dispatching.prompt import prompt_for
from custodes.supervision.dispatching.repair import Repair, repair_of
from custodes.supervision.dispatching.runtime_call import NoResultError, call_runtime, checked
from custodes.supervision.dispatching.slots import Places
from custodes.supervision.event_words import falls_back
from custodes.supervision.events import AttemptEnded, AttemptProgress, AttemptStarted, Event
from custodes.supervision.evidence import Evidence, EvidenceError, parse, schema_for
from custodes.supervision.nesting.nest import Nest
from custodes.supervision.pools.admission import Admission, Confirm, Settle, Traced
from custodes.supervision.pools.health import settle
from custodes.supervision.record.records import AttemptEnd
from custodes.supervision.work import Attempt, Shortfall, failed_status
from custodes.supervision.writers.leases import Hold
from custodes.telemetry import Contents, SpanHandle, attach

logger = logging.getLogger("custodes.dispatch")

SETTLE_BOUND_S = 5.0
"""How long the end of an attempt may wait for the store, in seconds."""
AT_WORK = ("output", "tool")
"""The progress that shows a runtime at the work itself: it has accepted it, and a probe is confirmed."""


class BudgetSpentError(Exception):
    """A running attempt was stopped: what it used no longer fitted the fan-out's budget."""

    def __init__(self, shortfall: Shortfall) -> None:
        super().__init__(str(shortfall))
        self.shortfall = shortfall


@dataclass(slots=True)
class AttemptRun:
    """``repair`` is what it asks where it is a repair turn; ``mends`` the turn that may mend an answer which
    did not fit."""

    job: Job
    services: Services
    route: Route
    admission: Admission
    registry: Registry
    """The adapters as they were when it was admitted."""
    number: int
    hold: Hold
    places: Places
    leave: Callable[[], None]
    """Called once its runtime has ended and no other attempt will follow: it needs no slot any more."""
    repair: Repair | None = None
    mends: Repair | None = None
    _accepted: bool = False
    _tool_calls: int = 0
    _calling: SpanHandle | None = None
    _used: Usage | None = None
    """What the runtime has reported so far."""
    _short: Shortfall | None = None
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """The runtime's own; cancelled once the budget is spent."""
    _started: float = field(default_factory=time.monotonic)

    async def perform(
        self, parent: SpanHandle, attempts: list[Attempt]
    ) -> tuple[Evidence | None, Failure | None]:
        """Run the attempt and settle it. It stands in ``attempts`` however it ended.

        Cancelled, the runtime ends what it started first, and the ticket is settled as a cancel of the
        caller's own, which says nothing about the pool.

        :raises BudgetSpentError: the budget stopped it; it is settled as cancelled is.
        """
        route, admission = self.route, self.admission
        self._emit(
            AttemptStarted,
            number=self.number,
            adapter=route.adapter,
            model=route.model,
            effort=route.effort,
            pool=route.pool,
            probe=admission.probe,
            fallback_reason=admission.fallback_reason,
            repair=self.repair is not None,
        )
        descriptor = self.registry.descriptors[route.adapter]
        span = self.services.tracer.attempt(
            parent,
            number=self.number,
            adapter=route.adapter,
            pool=route.pool,
            health_state=admission.state,
            probe=admission.probe,
            fallback_reason=admission.fallback_reason,
        )
        with span, attach(span.context):
            try:
                await self.job.account.kept()
                result = await self._call(descriptor, span)
            except BudgetSpentError:
                await self._ended_early(attempts)
                span.end(error_type="budget")
                raise
            except anyio.get_cancelled_exc_class():
                await self._ended_early(attempts)
                raise
            except Exception as error:  # a bug of ours: the child crashes, and nobody else closes its row
                reason = f"the attempt crashed: {type(error).__name__}"
                await self._ended_early(attempts, Failure(category="provider", reason=reason))
                raise
            evidence, failure = evidence_of(self.job.role, result, accepted=self._accepted)
            attempts.append(self._attempt(result, failure))
            if failure is not None and result.failure is None:
                self.mends = repair_of(self.job.work.prompt, result, failure.reason, descriptor)
            if failure is not None:
                self.hold.left += failure.left
            unused = failure is not None and failure.outcome == "known_failed" and not failure.accepted
            self.job.account.settle(self.job.run_id, result.usage, unused=unused)
            if failure is None:
                # Whoever is let in now asks for its admission after this settle, and so in the same commit.
                self.leave()
            await self._settle(result, failure)
            self._emit(
                AttemptEnded,
                number=self.number,
                pool=route.pool,
                seconds=attempts[-1].seconds,
                failure=failure,
            )
            if failure is not None:
                span.set(
                    category=failure.category, outcome=failure.outcome, retry_after_s=failure.retry_after_s
                )
                span.end(error_type=failure.category)
            where = (
                f"{route.pool}, {falls_back(covers)},"
                if (covers := admission.fallback_reason)
                else route.pool
            )
            how = "well" if failure is None else failure.category
            logger.info("attempt %d of run %s on %s ended: %s", self.number, self.job.run_id, where, how)
            return evidence, failure

    async def _ended_early(self, attempts: list[Attempt], failure: Failure | None = None) -> None:
        """It was stopped, or crashed: what it used is known in part at most, and it says nothing about the
        pool."""
        ended = DispatchResult(usage=self._used, failure=failure)
        attempts.append(self._attempt(ended, failure))
        self.job.account.release(self.job.run_id)
        await self._settle(ended, failure, cancelled=failure is None)

    async def _call(self, descriptor: Descriptor, parent: SpanHandle) -> DispatchResult:
        """Call the runtime under a deadline of our own; whatever it raises becomes a normalized failure."""
        route, job = self.route, self.job
        with self.services.tracer.call(
            parent,
            role=job.role,
            provider=descriptor.provider,
            adapter=route.adapter,
            model=route.model,
            effort=route.effort,
        ) as span:
            self._calling = span
            nest = Nest(job, self.places, parent, self.services.database)
            environment = {**nest.environment(self.services.project), **span.traceparent()}
            if descriptor.can("trace_context"):
                environment |= self.services.tracer.endpoint
            asked = job.question.policy.telemetry
            contents = Contents(
                prompts=asked.prompts, outputs=asked.outputs, tool_arguments=asked.tool_arguments
            )
            relayed = descriptor.spans if asked.relay else {}
            self.services.nests[job.run_id] = nest
            try:
                provider = descriptor.provider or route.adapter
                async with span.relayed(relayed, provider, contents) as endpoint:
                    environment |= endpoint
                    request = request_for(
                        job,
                        route,
                        descriptor,
                        self.services.project,
                        environment,
                        self.repair,
                        partial(self.services.asks.ask, job),
                    )
                    span.say(contents, prompt=request.prompt)
                    result = await call_runtime(
                        self.registry, request, route.adapter, self._on_progress, self._scope
                    )
                    if self._short is not None and self._scope.cancelled_caught:
                        span.end(error_type="cancelled")
                        raise BudgetSpentError(self._short)
                    span.say(contents, output=result.text)
                if nest.used:  # counted at once: others are let in while nested work is still being ended
                    job.account.observe(job.run_id, result.usage)
            finally:
                del self.services.nests[job.run_id]
                await nest.close()
            usage = result.usage or Usage()
            span.set(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_input_tokens=usage.cached_input_tokens,
                cost_usd=usage.cost_usd,
                native_conversation=result.native_thread_id,
                served_model=result.served_model,
                tool_calls=self._tool_calls,
            )
            if result.failure is not None:
                span.end(error_type=result.failure.category)
            return result

    def _note_trace(self) -> None:
        """A program has started, whose own spans will name the call's: should this owner be killed, whoever
        tells its spans knows their ids. It waits for nothing."""
        if self._calling is None or (trace := self._calling.lineage()) is None:
            return
        try:
            self.services.health.tell(Traced(self.admission.ticket, trace))
        except ActorError as error:
            logger.warning("the trace of run %s could not be noted: %s", self.job.run_id, error)

    def _on_progress(self, progress: Progress) -> None:
        self._tool_calls += progress.kind == "tool"
        if progress.kind == "started":
            self._note_trace()
        if progress.kind in AT_WORK and not self._accepted:
            self._accepted = True
            self._confirm()
        if progress.usage is not None:
            self._has_used(progress.usage)
        self._emit(AttemptProgress, number=self.number, progress=progress)

    def _has_used(self, usage: Usage) -> None:
        """What the attempt has used in all so far: it is stopped once that no longer fits the budget."""
        try:
            self._used = checked(DispatchResult(usage=usage)).usage
        except NoResultError as error:
            logger.warning("adapter %s told of usage that is none: %s", self.route.adapter, error)
            return
        self._short = self._short or self.job.account.observe(self.job.run_id, self._used)
        if self._short is not None:
            self._scope.cancel()

    def _confirm(self) -> None:
        """The first model output: a probe is confirmed now, not at the end of the work."""
        if not self.admission.probe:
            return
        try:
            self.services.health.tell(Confirm(self.admission.ticket))
        except ActorError as error:  # settling will do: the lease is only held longer
            logger.warning("a probe of %s could not be confirmed: %s", self.route.pool, error)

    def _served_another(self, result: DispatchResult) -> bool:
        """A model that nobody asked for is flagged, never silent (acceptance R17)."""
        asked, served = self.route.model, result.served_model
        if asked is None or served is None or serves(asked, served):
            return False
        logger.warning("run %s was served another model than the %s it asked for", self.job.run_id, asked)
        return True

    def _attempt(self, result: DispatchResult, failure: Failure | None = None) -> Attempt:
        route, admission = self.route, self.admission
        return Attempt(
            number=self.number,
            adapter=route.adapter,
            model=route.model,
            effort=route.effort,
            pool=route.pool,
            health_state=admission.state,
            health_probe=admission.probe,
            failure=failure,
            usage=result.usage,
            native_thread_id=result.native_thread_id,
            served_model=result.served_model,
            model_mismatch=self._served_another(result),
            fallback_reason=self.admission.fallback_reason,
            repair=self.repair is not None,
            seconds=time.monotonic() - self._started,
        )

    async def _settle(
        self, result: DispatchResult, failure: Failure | None, *, cancelled: bool = False
    ) -> None:
        """Settle the ticket and close the row, in one commit, whoever cancels meanwhile. What cannot be
        settled ends with its lease."""
        lacks_evidence = failure is not None and result.failure is None
        message = Settle(
            ticket=self.admission.ticket,
            failure=None if lacks_evidence else failure,
            end=AttemptEnd(
                status=failed_status(failure, self.job.mutable) if lacks_evidence and failure else None,
                usage=result.usage,
                native_thread_id=result.native_thread_id,
                served_model=result.served_model,
            ),
            cancelled=cancelled,
        )
        try:
            with anyio.move_on_after(SETTLE_BOUND_S, shield=True):
                await settle(self.services.health, message)
        except ActorError as error:
            logger.error("the end of run %s could not be recorded: %s", self.job.run_id, error)  # noqa: TRY400 - the words say it

    def _emit(self, event: type[Event], **fields: object) -> None:
        self.services.emit(event, self.job.conversation, self.job.run_id, **fields)


def request_for(
    job: Job | Plain,
    route: Route,
    descriptor: Descriptor,
    project: Path,
    environment: dict[str, str],
    repair: Repair | None = None,
    permit: Permit | None = None,
) -> DispatchRequest:
    """What the runtime is asked. One that can is handed the schema; any other is told it in words."""
    thread = job.thread if isinstance(job, Job) else None
    return DispatchRequest(
        run_id=job.run_id,
        role=job.role,
        prompt=prompt_for(job.role, repair.prompt if repair else job.work.prompt, descriptor),
        mutable=job.mutable,
        cwd=str(project),
        timeout_s=route.timeout_s,
        model=route.model,
        effort=route.effort,
        schema=schema_for(job.role) if descriptor.can("structured_output") else None,
        environment=environment,
        resume=(repair.resume if repair else None) or thread,
        permit=permit,
    )


def evidence_of(
    role: Role, result: DispatchResult, *, accepted: bool
) -> tuple[Evidence | None, Failure | None]:
    """The slice in a good result. One without it is a failure of the work, not of the pool.

    ``accepted``: the runtime was seen at work, so that a failure of it may have had an effect.
    """
    if result.failure is not None:
        return None, replace(result.failure, accepted=result.failure.accepted or accepted)
    try:
        return parse(role, result.text if result.structured is None else result.structured), None
    except EvidenceError as error:
        return None, Failure(category="provider", reason=str(error), outcome="unknown", accepted=True)
