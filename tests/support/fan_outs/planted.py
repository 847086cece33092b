"""Bugs to plant: each takes one rule of the product out, as somebody might who means well.

A simulation that does not find them proves nothing. Each is a patch of the pure rule or of the executor that
keeps it, with the invariant that is to find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from custodes import FanOut
from custodes.supervision import launcher, outcomes
from custodes.supervision.budgets import account, budget
from custodes.supervision.budgets.account import Account
from custodes.supervision.child import Child
from custodes.supervision.dispatching import attempt, dispatch
from custodes.supervision.dispatching.attempt import AttemptRun
from custodes.supervision.dispatching.dispatch import Dispatch
from custodes.supervision.evidence import ReviewerEvidence
from custodes.supervision.nesting.nest import Nest
from custodes.supervision.pools import breaker, health, health_fold
from custodes.supervision.pools.breaker import Pool, Settled
from custodes.supervision.record import records
from custodes.supervision.work import Outcome
from custodes.supervision.writers import scopes
from custodes.supervision.writers.leases import Leases
from custodes.telemetry.span_handle import SpanHandle, error_type_of
from support.fan_outs import budgets, invariants
from support.fan_outs.life import Life


class Planted(NamedTuple):
    what: str
    plant: Callable[[pytest.MonkeyPatch], None]
    found_by: Callable[[Life], None]
    rare: bool = False
    """It shows in fewer than one life of fifty."""


def _scope_without_proof(patch: pytest.MonkeyPatch) -> None:
    release = Leases._release

    async def early(self: Leases, take: Any, hold: Any) -> None:
        hold.left = ()
        await release(self, take, hold)

    patch.setattr(Leases, "_release", early)


def _only_equal_scopes_conflict(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scopes, "_overlap", lambda one, other: one == other)


def _line_is_not_left(patch: pytest.MonkeyPatch) -> None:
    release = Leases._release

    async def only_held(self: Leases, take: Any, hold: Any) -> None:
        if hold.number is not None:
            await release(self, take, hold)

    patch.setattr(Leases, "_release", only_held)


def _unknown_is_replayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dispatch, "may_try_again", lambda failure, mutable: failure.retryable and not failure.left)


def _everything_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dispatch, "may_try_again", lambda failure, mutable: not mutable)


def _settled_without_refund(patch: pytest.MonkeyPatch) -> None:
    settle = budget.settle

    def kept(ledger: Any, reservation: Any, used: Any) -> Any:
        return msgspec.structs.replace(settle(ledger, reservation, used), reserved=ledger.reserved)

    patch.setattr(account, "settle", kept)


def _queued_are_not_reserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(launcher, "reserved", lambda account, job, records: job.informed(records))


def _used_is_not_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Account, "observe", lambda self, run_id, usage: None)


def _nothing_is_reserved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(account, "fits", lambda ledger, need: None)
    reserve = budget.reserve

    def always(ledger: Any, need: Any) -> Any:
        rich = msgspec.structs.replace(ledger.budget, tokens=10**9, usd=1e6)
        after, granted = reserve(msgspec.structs.replace(ledger, budget=rich), need)
        return msgspec.structs.replace(after, budget=ledger.budget), granted

    patch.setattr(account, "reserve", always)


def _deadline_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Account, "may_start", lambda self: None)


def _stop_finishes(patch: pytest.MonkeyPatch) -> None:
    cancel = FanOut.cancel

    async def unless_late(self: FanOut, reason: str = "cancelled") -> None:
        if "wall seconds" not in reason:
            await cancel(self, reason)

    patch.setattr(FanOut, "cancel", unless_late)


def _two_probes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pool, "lease_remaining", lambda self, now: 0.0)


def _any_success_heals(patch: pytest.MonkeyPatch) -> None:
    decide = breaker.decide

    def heals(pool: Pool, event: Any, now: Any) -> Any:
        then, answer = decide(pool, event, now)
        if isinstance(event, Settled) and event.failure is None and not event.cancelled:
            then = msgspec.structs.replace(then, deadline=None, lease=None, failure_count=0)
        return then, answer

    patch.setattr(health_fold, "decide", heals)


def _smaller_wait_shortens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(breaker, "later", lambda one, other, now: other)


def _disabled_runs_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dispatch, "applies", lambda policy, module, complexity: "route")


def _granted_to_nobody(patch: pytest.MonkeyPatch) -> None:
    async def forget(health: Any, ask: Any) -> None:
        return

    patch.setattr(health, "withdraw", forget)
    patch.setattr(dispatch, "withdraw", forget)


def _open_after_a_budget_stop(patch: pytest.MonkeyPatch) -> None:
    ended_early = AttemptRun._ended_early

    async def quietly(self: AttemptRun, attempts: Any) -> None:
        if self._short is None:
            await ended_early(self, attempts)

    patch.setattr(AttemptRun, "_ended_early", quietly)


def _row_is_not_written(patch: pytest.MonkeyPatch) -> None:
    insert = records.insert

    async def only_closed(connection: Any, rows: Any) -> None:
        await insert(connection, [row for row in rows if row.ended is not None])

    patch.setattr(records, "insert", only_closed)


def _refusal_has_no_row(patch: pytest.MonkeyPatch) -> None:
    async def forget(*_: Any, **__: Any) -> None:
        return

    patch.setattr(dispatch, "record_unrun", forget)


def _slot_is_kept_on_refusal(patch: pytest.MonkeyPatch) -> None:
    refused = Dispatch._refused

    async def keeping(self: Dispatch, refusal: Any) -> Outcome:
        self.room.slots._held.clear()
        return await refused(self, refusal)

    patch.setattr(Dispatch, "_refused", keeping)


def _span_outlives_a_cancel(patch: pytest.MonkeyPatch) -> None:
    end_for = SpanHandle.end_for

    def unless_cancelled(self: SpanHandle, raised: Any) -> None:
        if raised is None or error_type_of(raised) != "cancelled":
            end_for(self, raised)

    patch.setattr(SpanHandle, "end_for", unless_cancelled)


def _failure_is_no_error(patch: pytest.MonkeyPatch) -> None:
    end = SpanHandle.end
    patch.setattr(SpanHandle, "end", lambda self, *, error_type=None: end(self))


def _success_is_believed(patch: pytest.MonkeyPatch) -> None:
    evidence_of = attempt.evidence_of

    def believing(role: Any, result: Any, *, accepted: bool) -> Any:
        evidence, failure = evidence_of(role, result, accepted=accepted)
        if result.failure is None and failure is not None:
            return ReviewerEvidence(summary="it says so"), None
        return evidence, failure

    patch.setattr(attempt, "evidence_of", believing)


def _cancel_answers_anew(patch: pytest.MonkeyPatch) -> None:
    cancel = Child.cancel

    async def anew(self: Child, reason: str = "") -> Outcome:
        await cancel(self, reason)
        return outcomes.cancelled(self.run_id, self.work)

    patch.setattr(Child, "cancel", anew)


def _in_the_order_they_ended(patch: pytest.MonkeyPatch) -> None:
    end = FanOut._end

    def to_the_back(self: FanOut, child: Any, outcome: Any) -> None:
        if child.result is None:
            self._children.remove(child)
            self._children.append(child)
        end(self, child, outcome)

    patch.setattr(FanOut, "_end", to_the_back)


def _orphans_go_on(patch: pytest.MonkeyPatch) -> None:
    async def leave(self: Nest) -> None:
        self.closed = True

    patch.setattr(Nest, "close", leave)


PLANTED = (
    Planted(
        "nested work goes on after the work that asked for it",
        _orphans_go_on,
        invariants.nested_work_ends_before_the_work_that_asked_for_it,
    ),
    Planted(
        "a scope is given back without the proof that nothing is left",
        _scope_without_proof,
        invariants.one_writer_has_a_scope_at_a_time,
    ),
    Planted(
        "only equal scopes conflict, not those that contain each other",
        _only_equal_scopes_conflict,
        invariants.one_writer_has_a_scope_at_a_time,
    ),
    Planted(
        "a cancelled wait for a scope keeps its place in the line",
        _line_is_not_left,
        invariants.nothing_is_left,
    ),
    Planted(
        "unknown mutable work is replayed", _unknown_is_replayed, invariants.mutable_work_is_never_done_twice
    ),
    Planted(
        "read-only work is tried again after whatever failure",
        _everything_is_tried_again,
        invariants.mutable_work_is_never_done_twice,
    ),
    Planted(
        "a settled attempt keeps its reservation",
        _settled_without_refund,
        budgets.a_budget_is_settled_to_the_last_token,
    ),
    Planted(
        "children that wait for a slot have nothing reserved",
        _queued_are_not_reserved,
        budgets.those_asked_for_first_get_what_there_is,
        rare=True,
    ),
    Planted(
        "what a running attempt uses is not counted",
        _used_is_not_seen,
        budgets.a_budget_is_settled_to_the_last_token,
    ),
    Planted("a reservation is never refused", _nothing_is_reserved, budgets.a_budget_is_never_over_reserved),
    Planted(
        "the wall seconds are not looked at once a child waits",
        _deadline_is_forgotten,
        budgets.nothing_starts_past_a_hard_limit,
    ),
    Planted(
        "nothing is stopped at the end of the wall seconds",
        _stop_finishes,
        budgets.nothing_starts_past_a_hard_limit,
    ),
    Planted(
        "a pool that is due lets in everybody", _two_probes, invariants.one_probe_of_a_pool_lives_at_a_time
    ),
    Planted(
        "any success heals a pool",
        _any_success_heals,
        invariants.nobody_is_let_into_a_pool_that_cools,
        rare=True,
    ),
    Planted(
        "a smaller wait takes the place of a larger one",
        _smaller_wait_shortens,
        invariants.nobody_is_let_into_a_pool_that_cools,
        rare=True,
    ),
    Planted(
        "disabling is not looked at once a child waits",
        _disabled_runs_on,
        invariants.nothing_is_let_in_while_supervision_is_disabled,
    ),
    Planted(
        "what a cancelled ask was granted is not given back",
        _granted_to_nobody,
        invariants.the_store_has_one_terminal_record_of_every_child,
    ),
    Planted(
        "a row stays open where the budget stops its attempt",
        _open_after_a_budget_stop,
        invariants.the_store_has_one_terminal_record_of_every_child,
        rare=True,
    ),
    Planted(
        "a runtime is called without its row",
        _row_is_not_written,
        invariants.a_runtime_is_called_only_behind_its_row,
    ),
    Planted(
        "a refusal has no row",
        _refusal_has_no_row,
        invariants.the_store_has_one_terminal_record_of_every_child,
    ),
    Planted("a refused child keeps its slot", _slot_is_kept_on_refusal, invariants.nothing_is_left),
    Planted(
        "a span is not ended by a cancel",
        _span_outlives_a_cancel,
        invariants.every_span_ends_once_under_its_own_parent,
    ),
    Planted(
        "a failure is no error on its span",
        _failure_is_no_error,
        invariants.a_span_is_an_error_if_and_only_if_it_says_of_which_type,
    ),
    Planted(
        "a success is believed without evidence",
        _success_is_believed,
        invariants.success_has_evidence_and_a_runtime_that_said_so,
    ),
    Planted(
        "a cancel is answered anew each time",
        _cancel_answers_anew,
        invariants.every_child_ends_once_and_every_cancel_gets_that_answer,
    ),
    Planted(
        "outcomes stand in the order of their ends",
        _in_the_order_they_ended,
        invariants.outcomes_stand_in_the_order_asked,
    ),
)
