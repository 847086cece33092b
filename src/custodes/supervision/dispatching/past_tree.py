"""Work that no actor of this host's tree does: left to the host, run plainly below the gate, or delegated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from custodes.adapters.port import Progress
from custodes.adapters.registry import Registry
from custodes.supervision.artifacts import verified
from custodes.supervision.budgets.account import Account
from custodes.supervision.dispatching.attempt import AT_WORK, evidence_of, request_for
from custodes.supervision.dispatching.job import Delegated, Plain, Unsupervised
from custodes.supervision.dispatching.runtime_call import call_runtime
from custodes.supervision.dispatching.slots import Slots
from custodes.supervision.nesting.client import Ask
from custodes.supervision.outcomes import cancelled, host_failed
from custodes.supervision.work import Outcome, Work, failed_status
from custodes.telemetry import envelope


class PastTree:
    """One piece of it. ``outcome`` is what it has come to, however it ended."""

    def __init__(self, run_id: str, work: Work, frozen: Delegated | Plain | Unsupervised) -> None:
        self._run_id = run_id
        self._work = work
        self._frozen = frozen
        self._ask: Ask | None = None
        self._outcome = cancelled(run_id, work)

    @property
    def outcome(self) -> Outcome:
        return self._outcome if self._ask is None else self._ask.outcome

    async def perform(
        self, registry: Callable[[], Registry], project: Path, account: Account, slots: Slots | None
    ) -> None:
        """Do it. ``account`` and ``slots`` are the fan-out's, which hold for what is delegated.

        What the host's own dispatch raises becomes its outcome.
        """
        frozen = self._frozen
        try:
            if isinstance(frozen, Delegated):
                self._ask = frozen.client.ask(self._run_id, self._work, frozen.session, account)
                await self._ask.perform(slots)
            elif isinstance(frozen, Plain):
                self._outcome = await _run_plainly(frozen, registry(), project)
            else:
                self._outcome = await frozen.perform()
        except Exception as error:
            self._ask, self._outcome = None, host_failed(self._run_id, self._work, error)


async def _run_plainly(plain: Plain, registry: Registry, project: Path) -> Outcome:
    """Below the gate: one call of the session's own runtime; no breaker, no store, no span, no fallback."""
    route = plain.route
    descriptor = registry.descriptors[route.adapter]
    request = request_for(plain, route, descriptor, project, {})
    accepted = False

    def watch(progress: Progress) -> None:
        nonlocal accepted
        accepted = accepted or progress.kind in AT_WORK

    result = await call_runtime(registry, request, route.adapter, watch)
    evidence, failure = evidence_of(plain.role, result, accepted=accepted)
    if evidence is not None:
        evidence = await verified(evidence, project)
    return Outcome(
        run_id=plain.run_id,
        role=plain.role,
        name=plain.work.label,
        status="done" if failure is None else failed_status(failure, plain.mutable),
        evidence=evidence,
        failure=failure,
        metadata=envelope(
            role=plain.role,
            provider=descriptor.provider,
            adapter=route.adapter,
            model=result.served_model or route.model,
            category=None if failure is None else failure.category,
            retry_after_s=None if failure is None else failure.retry_after_s,
        ),
    )
