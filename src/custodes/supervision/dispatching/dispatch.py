"""Admit, run, settle, fall back: the one executor of a piece of work and the only caller of a runtime.

Each turn of its loop holds the scope (where the work is mutable) and a slot, asks the health actor to
admit one of the frozen candidates, runs it, and settles. What was frozen when the child was made can only
shrink here: disabling, eligibility, trust, readiness and health are read live at each admission.

The scope is taken before the slot: a writer that waits for its turn keeps no slot from anybody.

No two dispatches ever wait for each other. What may be waited for comes in one order: a place among those
alive (new work only), a scope, the fan-out's slot, the host's slot; whoever waits for one holds none of a
later kind. Who holds a slot waits for nobody but its runtime. Who holds a scope or a place among those alive
may besides wait for nested work of its own; that needs no place among those alive, comes before new work
where it waits for a slot, and of scopes waits for nothing but what waits downwards, too
(`scopes.reaches_outside`).
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import anyio

from custodes.actors import ActorError
from custodes.adapters.port import Failure
from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.routing import Route
from custodes.policy.settings import SettingsError
from custodes.policy.trigger import applies
from custodes.supervision.artifacts import verified
from custodes.supervision.dispatching.attempt import AttemptRun, BudgetSpentError
from custodes.supervision.dispatching.job import Job, Services
from custodes.supervision.dispatching.repair import Repair
from custodes.supervision.dispatching.runtime_call import CANCEL_GRACE_S, PROOF_BOUND_S
from custodes.supervision.dispatching.slots import Rank, Room
from custodes.supervision.events import AttemptRefused, ChildWaiting, Event
from custodes.supervision.evidence import Evidence
from custodes.supervision.outcomes import metadata_of, record_unrun
from custodes.supervision.pools.admission import Admission, Admit, Candidate, Refused
from custodes.supervision.pools.health import admit, withdraw
from custodes.supervision.pools.health_view import adapter_of
from custodes.supervision.record.owner_identity import proven_dead
from custodes.supervision.record.records import AttemptStart
from custodes.supervision.refusal import budget_refusal, capacity_refusal
from custodes.supervision.work import Attempt, Outcome, Refusal, RefusalCategory, Status, failed_status
from custodes.supervision.writers.leases import Hold, ScopeRefusedError
from custodes.supervision.writers.scopes import READ_ONLY, Scope, resolve
from custodes.telemetry import SpanHandle

LEAST_PAUSE_S = 1.0
"""Between a limit and the next ask of work that may wait: the ask then tells how long the wait really is."""


def may_try_again(failure: Failure, mutable: bool) -> bool:
    """Whether another runtime may be given the work after this failure.

    Only what is retryable; and only read-only work, or work that is known to have failed before the
    runtime accepted it. So a timeout never, a server error for read-only work only.
    """
    if failure.left:  # something of it may still be at work
        return False
    return failure.retryable and (not mutable or (failure.outcome == "known_failed" and not failure.accepted))


@dataclass(frozen=True, slots=True)
class _Pause:
    """Nobody lets the work in; it may ask again in so many seconds."""

    seconds: float


@dataclass(slots=True, eq=False)
class Dispatch:
    """Performs one job. ``attempts`` can be read at any time: what a cancelled job had come to. ``room``
    is what it runs in: held already, or yet to be taken."""

    job: Job
    services: Services
    span: SpanHandle
    room: Room
    attempts: list[Attempt] = field(default_factory=list)
    _withdrawn: int = 0

    async def perform(self) -> Outcome:
        """Do the work. Cancelled, the running attempt is ended and settled before the cancel goes on."""
        try:
            scope = resolve(self.services.project, self.job.work.scope) if self.job.mutable else READ_ONLY
        except (OSError, ValueError) as error:
            wrong = getattr(error, "strerror", None) or error
            return await self._refused(self._refusal("invalid", f"a scope is no path: {wrong}"))
        wait_until = anyio.current_time() + self.job.work.wait
        while True:
            try:
                end, hold = await self._turn(scope, wait_until)
            except ScopeRefusedError as error:
                return await self._refused(self._refusal(error.category, str(error)))
            if hold.lost and self.attempts:
                return self._fenced_off(hold)
            if isinstance(end, Outcome):
                return end
            self._emit(ChildWaiting, reason="recovery", seconds=end.seconds)
            await anyio.sleep(end.seconds)

    def outcome(
        self,
        status: Status,
        *,
        evidence: Evidence | None = None,
        failure: Failure | None = None,
        refusal: Refusal | None = None,
    ) -> Outcome:
        job = self.job
        return Outcome(
            run_id=job.run_id,
            role=job.role,
            name=job.work.label,
            status=status,
            evidence=evidence,
            failure=failure,
            refusal=refusal,
            attempts=tuple(self.attempts),
            metadata=self._metadata(),
        )

    def _metadata(self) -> dict[str, Any]:
        if not self.attempts:
            return {}
        last = self.attempts[-1]
        adapter = self.job.question.catalog.find(last.adapter)
        return metadata_of(self.job.role, adapter.descriptor.provider if adapter else "", last)

    async def _turn(self, scope: Scope, wait_until: float) -> tuple[Outcome | _Pause, Hold]:
        """Try the candidates while the scope, a place among those alive and a slot are held."""
        nested, alive = self.job.under is not None, self.room.alive
        try:
            while True:
                async with self._scope(scope) as hold:
                    if nested:
                        alive.take_beyond()
                    elif not alive.held and not alive.full:
                        await alive.take()
                    if alive.held:
                        await self._take_slot("nested" if nested else "new")
                        return await self._work_through(wait_until, hold), hold
                # A scope is not kept from nested work that those alive wait for.
                self._emit(ChildWaiting, reason="slot")
                await alive.take()
        finally:
            self.room.give_back()

    async def _take_slot(self, rank: Rank) -> None:
        slots = self.room.slots
        if slots.held:
            return
        if slots.full:
            self._emit(ChildWaiting, reason="slot")
        await slots.take(rank)

    def _scope(self, scope: Scope) -> AbstractAsyncContextManager[Hold]:
        return self.services.leases.hold(
            self.job.run_id, scope, lambda: self._emit(ChildWaiting, reason="scope"), self.job.writer
        )

    async def _work_through(self, wait_until: float, hold: Hold) -> Outcome | _Pause:
        """Try the candidates in order until one has done the work, or none may try any more."""
        job, candidates = self.job, self.job.candidates
        covers: str | None = job.covers
        while True:
            answer = await self._admit(candidates, hold, covers)
            if isinstance(answer, Refusal):
                self._emit(AttemptRefused, refusal=answer)
                pause = answer.retry_after_s
                if pause is not None and anyio.current_time() + pause <= wait_until:
                    return _Pause(pause)
                return await self._refused(answer)
            route, admission, registry = answer
            end = await self._attempt(route, admission, registry, hold)
            if isinstance(end, Outcome):
                return end
            failure, repair = end
            if repair is not None and not job.mutable:
                return await self._repaired(route, admission.fallback_reason, repair, hold, failure)
            if may_try_again(failure, job.mutable):
                candidates = tuple(other for other in candidates if other.pool != route.pool)
                covers = failure.category
                if candidates:
                    continue
                if failure.category == "capacity" and anyio.current_time() + LEAST_PAUSE_S <= wait_until:
                    return _Pause(LEAST_PAUSE_S)
            return self.outcome(failed_status(failure, job.mutable), failure=failure)

    async def _attempt(
        self,
        route: Route,
        admission: Admission,
        registry: Registry,
        hold: Hold,
        *,
        repair: Repair | None = None,
    ) -> Outcome | tuple[Failure, Repair | None]:
        """How the work ended with this attempt; else why it failed, and the turn that may mend it."""
        number = self._number
        run = AttemptRun(
            self.job,
            self.services,
            route,
            admission,
            registry,
            number=number,
            hold=hold,
            places=self.room.slots,
            leave=self.room.give_back,
            repair=repair,
        )
        try:
            evidence, failure = await run.perform(self.span, self.attempts)
        except BudgetSpentError as error:
            return self.outcome("cancelled", refusal=budget_refusal(error.shortfall, route))
        if failure is not None:
            return failure, run.mends
        if evidence is not None:
            evidence = await verified(evidence, self.services.project)
        return self.outcome("done", evidence=evidence)

    async def _repaired(
        self, route: Route, covers: str | None, repair: Repair, hold: Hold, failure: Failure
    ) -> Outcome:
        """One more turn on the same route, admitted like any attempt, and never a second one. Where it is
        not let in, what the first turn came to stands."""
        answer = await self._admit((route,), hold, covers)
        if isinstance(answer, Refusal):
            self._emit(AttemptRefused, refusal=answer)
            return self.outcome(failed_status(failure, self.job.mutable), failure=failure)
        end = await self._attempt(*answer, hold, repair=repair)
        if isinstance(end, Outcome):
            return end
        return self.outcome(failed_status(end[0], self.job.mutable), failure=end[0])

    async def _admit(
        self, candidates: tuple[Route, ...], hold: Hold, covers: str | None
    ) -> tuple[Route, Admission, Registry] | Refusal:
        """A ticket for the first candidate that may run now, with the adapters as they then were; or why
        none may.

        :param covers: the category of why the first candidate is not what was asked for; None where it is.
        """
        job, services = self.job, self.services
        if job.under is not None and proven_dead(job.under.client):
            # Nobody waits for it: the program that it borrows its scope of may write there again.
            return self._refusal("unavailable", "the process that asked for it has died")
        if (late := job.account.may_start()) is not None:
            return budget_refusal(late, job.candidates[0])
        try:
            settings = services.settings.read()
        except SettingsError as error:
            return self._refusal("settings", str(error))
        if applies(settings.policy, settings.module_enabled, job.work.complexity) == "off":
            return self._refusal(
                "disabled", "supervision was disabled meanwhile; `cos supervision enable` enables it"
            )
        services.slots.limit = settings.policy.max_parallel
        services.alive.limit = settings.policy.max_live
        outlook = services.outlook.now()
        registry, catalog = outlook.registry, outlook.catalog
        live, unavailable = _live(candidates, catalog)
        passed_over = (*job.passed_over, *unavailable)
        if not live:
            return self._refusal("unavailable", unavailable[0], (*job.passed_over, *unavailable[1:]))
        if live[0] != candidates[0]:
            covers = covers or "unavailable"
        described = [(route, registry.descriptors[route.adapter]) for route in live]
        live, short = job.account.reserve(job.run_id, job.work, described)
        if not live:
            return budget_refusal(short[0], described[0][0], (*passed_over, *map(str, short[1:])))
        if live[0] != candidates[0]:
            covers = covers or "budget"
        passed_over = (*passed_over, *map(str, short))
        ask = Admit(
            candidates=tuple(_candidate(route, catalog) for route in live),
            attempt=AttemptStart(
                run_id=job.run_id,
                number=self._number,
                conversation=job.conversation,
                role=job.role,
                name=job.work.label,
                mutable=job.mutable,
                parent_run=job.parent_run,
                fan_out=job.fan_out,
                trace=self.span.lineage(),
                fallback_reason=covers,
            ),
            cooldown=settings.policy.cooldown,
            scope_lease=hold.id,
            lease_s=max(route.timeout_s for route in live) + CANCEL_GRACE_S + PROOF_BOUND_S,
        )
        try:
            answer = await admit(services.health, ask)
        except ActorError as error:
            return self._refusal("unavailable", f"the health of its pool cannot be asked: {error}")
        if isinstance(answer, Refused):
            self._trace_blocked(answer)
            return capacity_refusal(answer, job.candidates[0], passed_over)
        self._trace_blocked(answer.before)
        route = live[answer.candidate]
        descriptor = registry.descriptors[route.adapter]
        if (gone := job.account.begin(job.run_id, job.work, route, descriptor)) is not None:
            await withdraw(services.health, ask)
            self._withdrawn += 1
            return budget_refusal(gone, route, passed_over)
        return route, answer, registry

    def _trace_blocked(self, refused: Refused) -> None:
        """A span for each candidate that did not let the work in."""
        for pool in refused.waiting:
            self.services.tracer.blocked(
                self.span,
                adapter=adapter_of(pool.pool),
                pool=pool.pool,
                category="capacity",
                health_state=pool.state,
                retry_after_s=pool.recovery_s,
            )
        for each in refused.unavailable:
            self.services.tracer.blocked(
                self.span, adapter=each.adapter, pool=each.pool, category=each.category
            )

    @property
    def _number(self) -> int:
        """Of the next row: one that was let in and then withdrawn has its own."""
        return len(self.attempts) + self._withdrawn + 1

    def _fenced_off(self, hold: Hold) -> Outcome:
        """Somebody else may have written there meanwhile: what it says of its work is not passed on."""
        failure = Failure(category="provider", reason=hold.lost, accepted=True, left=hold.left)
        return self.outcome("unknown", failure=failure)

    def _refusal(self, category: RefusalCategory, reason: str, passed_over: tuple[str, ...] = ()) -> Refusal:
        return Refusal(
            category=category, reason=reason, route=self.job.candidates[0], passed_over=passed_over
        )

    async def _refused(self, refusal: Refusal) -> Outcome:
        outcome = self.outcome("refused", refusal=refusal)
        await record_unrun(
            self.services.health,
            self.job.conversation,
            outcome,
            number=self._number,
            mutable=self.job.mutable,
            parent_run=self.job.parent_run,
            fan_out=self.job.fan_out,
            trace=self.span.lineage(),
        )
        return outcome

    def _emit(self, event: type[Event], **fields: object) -> None:
        self.services.emit(event, self.job.conversation, self.job.run_id, **fields)


def _candidate(route: Route, catalog: Catalog) -> Candidate:
    adapter = catalog.find(route.adapter)
    return Candidate(
        pool=route.pool,
        adapter=route.adapter,
        model=route.model,
        effort=route.effort,
        fingerprint=(adapter and adapter.fingerprint) or None,
    )


def _live(candidates: tuple[Route, ...], catalog: Catalog) -> tuple[tuple[Route, ...], tuple[str, ...]]:
    """The candidates whose adapter is still eligible and ready, and why each other one is not."""
    live: list[Route] = []
    reasons: list[str] = []
    for route in candidates:
        adapter = catalog.find(route.adapter)
        if adapter is None:
            reasons.append(str(catalog.not_eligible(route.adapter)))
        elif not adapter.ready:
            reasons.append(f"adapter '{route.adapter}' is unavailable: {adapter.reason}")
        else:
            live.append(route)
    return tuple(live), tuple(reasons)
