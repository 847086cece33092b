"""What must hold of every life of fan-outs: judged on what the runtime, the parents, the store and the host's
tracing saw, by code that shares no rule with the product."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from custodes import Outcome
from custodes.supervision.events import ChildEnded, ChildQueued
from custodes.supervision.record.records import AttemptRow
from support.fan_outs import budgets
from support.fan_outs.life import A_MOMENT, ADMISSION_S, MORE_S, WALL, Life, calls_by_run
from support.puppets import Violation

NOT_PROVEN = "whether its scope was its own to the end is not proven"


def outcomes_of(life: Life) -> Iterator[Outcome]:
    """Of all children at whatever depth, as they were told of."""
    for _, event in life.events:
        if isinstance(event, ChildEnded):
            yield event.outcome


def rows_by_run(life: Life) -> dict[str, list[AttemptRow]]:
    found: dict[str, list[AttemptRow]] = defaultdict(list)
    for row in sorted(life.rows, key=lambda row: (row.number, row.started)):
        found[row.run_id].append(row)
    return found


# -- Children


def outcomes_stand_in_the_order_asked(life: Life) -> None:
    for told in life.fans:
        ids = [outcome.run_id for outcome in told.outcomes]
        if ids != [asked.child.run_id for asked in told.asked]:
            raise Violation(f"outcomes of {ids} for children {told.asked}")


def every_child_ends_once_and_every_cancel_gets_that_answer(life: Life) -> None:
    queued = Counter(event.run_id for _, event in life.events if isinstance(event, ChildQueued))
    ended: dict[str, list[Outcome]] = defaultdict(list)
    for _, event in life.events:
        if isinstance(event, ChildEnded):
            ended[event.run_id].append(event.outcome)
    if any(times != 1 for times in queued.values()) or queued.keys() != ended.keys():
        raise Violation(f"queued {queued}, ended {Counter(ended)}")
    for told in life.fans:
        for asked, outcome in zip(told.asked, told.outcomes, strict=True):
            if any(answer is not outcome for answer in (*ended[outcome.run_id], *asked.answers)):
                raise Violation(f"several ends of {outcome.run_id}: {asked.answers} beside {outcome}")


def the_store_has_one_terminal_record_of_every_child(life: Life) -> None:
    rows = rows_by_run(life)
    if open_rows := [row for row in life.rows if row.ended is None or row.status == "running"]:
        raise Violation(f"open rows: {open_rows}")
    known = {event.run_id for _, event in life.events if isinstance(event, ChildQueued)}
    if strangers := rows.keys() - known:
        raise Violation(f"rows of runs that nobody asked for: {strangers}")
    for outcome in outcomes_of(life):
        _judge_rows(outcome, rows[outcome.run_id])


def _judge_rows(outcome: Outcome, rows: list[AttemptRow]) -> None:
    ran = [row for row in rows if row.status not in ("refused", "skipped")]
    unrun = [row for row in rows if row not in ran]
    said = f"{outcome.status} ({outcome.refusal}) of {outcome.run_id} with rows {rows}"
    if len({row.number for row in rows}) != len(rows):
        raise Violation(f"two rows of one number: {said}")
    match outcome.status:
        case "refused":
            assert outcome.refusal is not None
            never_recorded = outcome.refusal.category in ("settings", "disabled") and not outcome.attempts
            if len(unrun) != 1 and not (never_recorded and not rows):
                raise Violation(f"no one row of the refusal: {said}")
            if unrun and (rows[-1] is not unrun[0] or unrun[0].category != outcome.refusal.category):
                raise Violation(f"the refusal is not what its row says: {said}")
        case "cancelled":
            if unrun or len(ran) < len(outcome.attempts):
                raise Violation(f"a cancel without its rows: {said}")
            if len(ran) > len(outcome.attempts) and ran[-1].status != "cancelled":
                raise Violation(f"an admission that was given back is not closed as cancelled: {said}")
        case "unknown" if outcome.failure is not None and outcome.failure.reason.startswith(NOT_PROVEN):
            pass
        case _:
            if unrun or len(ran) != len(outcome.attempts) or ran[-1].status != outcome.status:
                raise Violation(f"the store says otherwise: {said}")


# -- Effects


def one_writer_has_a_scope_at_a_time(life: Life) -> None:
    """But for work that a writer asked for itself: that one waits for it, and lends it its scope."""
    scopes = {run: [_parts(name) for name in work.scope or (".",)] for run, work in life.works.items()}
    writers = [call for call in life.calls if call.request.mutable and call.run_id in scopes]
    for one, other in combinations(writers, 2):
        shared = any(
            a[: len(b)] == b or b[: len(a)] == a for a in scopes[one.run_id] for b in scopes[other.run_id]
        )
        at_once = one.gone is None or other.began < one.gone  # calls stand in the order they began
        lent = one.run_id in life.ancestors(other.run_id) or other.run_id in life.ancestors(one.run_id)
        if shared and at_once and one.run_id != other.run_id and not lent:
            raise Violation(f"two writers of one scope at once: {one} and {other}")


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part for part in name.split("/") if part != ".")


def mutable_work_is_never_done_twice(life: Life) -> None:
    """And other work only after what is retryable; or once more, to put an answer into its form."""
    for calls in calls_by_run(life).values():
        repaired = False
        for call in calls[:-1]:
            failure = call.failure
            if call.deed == "lie" and not call.request.mutable and not repaired:
                repaired = True
                continue
            if failure is None or not failure.retryable or failure.left:
                raise Violation(f"called again after {call}")
            if call.request.mutable and (call.accepted or failure.outcome != "known_failed"):
                raise Violation(f"mutable work was called again after {call}")


def nested_work_ends_before_the_work_that_asked_for_it(life: Life) -> None:
    rows = rows_by_run(life)
    for run_id, nested in life.nested.items():
        ends = [row.ended for row in rows[run_id] if row.status != "refused" and row.ended is not None]
        parents = [row.ended for row in rows[nested.parent] if row.ended is not None]
        if ends and max(ends) > max(parents) + A_MOMENT:
            raise Violation(f"{run_id} ended at {ends}, and its parent at {parents}")
        told = nested.outcome
        if told is not None and told.status == "done" and not any(r.status == "done" for r in rows[run_id]):
            raise Violation(f"told of as done: {told}, with rows {rows[run_id]}")


def a_runtime_is_called_only_behind_its_row(life: Life) -> None:
    rows = rows_by_run(life)
    for run_id, calls in calls_by_run(life).items():
        ran = [row for row in rows[run_id] if row.status not in ("refused", "skipped")]
        pools = [row.pool for row in ran]
        if any(call.pool not in pools for call in calls) or len(calls) > len(ran):
            raise Violation(f"calls {calls} with rows {ran}")


def success_has_evidence_and_a_runtime_that_said_so(life: Life) -> None:
    calls = calls_by_run(life)
    honest = {"answer", "answer_silently", "answer_as_another", "answer_late", "tell_of_it", "delegate"}
    for outcome in outcomes_of(life):
        if (outcome.status == "done") != (outcome.evidence is not None):
            raise Violation(f"{outcome.status} with evidence {outcome.evidence}")
        if outcome.status == "done" and calls[outcome.run_id][-1].deed not in honest:
            raise Violation(f"done by {calls[outcome.run_id][-1]}")


# -- Pools


def one_probe_of_a_pool_lives_at_a_time(life: Life) -> None:
    """It lives until it ends, until it is first seen at work, or until its lease is over."""
    probes: dict[str | None, list[AttemptRow]] = defaultdict(list)
    for row in sorted(life.rows, key=lambda row: row.started):
        if row.probe:
            probes[row.pool].append(row)
    for pool, rows in probes.items():
        for earlier, later in pairwise(rows):
            if later.started < _end_of_probe(earlier, life) - A_MOMENT:
                raise Violation(f"two probes of {pool} at once: {earlier} and {later}")


def _end_of_probe(row: AttemptRow, life: Life) -> float:
    assert row.ended is not None
    ends = [row.ended]
    for call in life.calls:
        if (call.run_id, call.pool) == (row.run_id, row.pool):
            ends.append(row.started + call.request.timeout_s + MORE_S)
            if call.output_at is not None:
                ends.append(WALL + call.output_at)
    return min(ends)


def nobody_is_let_into_a_pool_that_cools(life: Life) -> None:
    """After a limit with a stated wait, until it is over or a probe has healed the pool."""
    by_pool: dict[str | None, list[AttemptRow]] = defaultdict(list)
    for row in life.rows:
        if row.status not in ("refused", "skipped"):
            by_pool[row.pool].append(row)
    for rows in by_pool.values():
        heals = [row.started for row in rows if row.probe and (row.confirmed or row.status == "done")]
        for limited in rows:
            if limited.category != "capacity" or limited.retry_after_s is None:
                continue
            assert limited.ended is not None
            if limited.probe and limited.ended > _end_of_probe(limited, life) + A_MOMENT:
                continue  # nobody believes a probe past its lease
            until = limited.ended + limited.retry_after_s
            for row in rows:
                healed = any(limited.started <= heal <= row.started for heal in heals)
                if limited.ended + A_MOMENT < row.started < until - A_MOMENT and not healed:
                    raise Violation(f"let in while the pool cooled: {row} after {limited}")


def nothing_is_let_in_while_supervision_is_disabled(life: Life) -> None:
    for since, until in life.disabled:
        for row in life.rows:
            if row.status != "refused" and since + ADMISSION_S < row.started - WALL < until - A_MOMENT:
                raise Violation(f"disabled from {since} to {until}, and let in: {row}")


# -- Traces


def every_span_ends_once_under_its_own_parent(life: Life) -> None:
    begun = {_id(span): span for span in life.spans.begun}
    ended = Counter(map(_id, life.spans.ended))
    if ended != Counter(begun.keys()):
        raise Violation(f"of {Counter(begun.keys())} ended {ended}")
    for span in life.spans.begun:
        parent = None if span.parent is None else begun[span.parent.span_id]
        kind, above = _kind(span), None if parent is None else _kind(parent)
        if above not in PARENTS[kind]:
            raise Violation(f"'{span.name}' ({kind}) stands under {above}")
    kinds = Counter(map(_kind, life.spans.begun))
    if kinds["call"] != len(life.calls):
        raise Violation(f"{kinds} for {len(life.calls)} calls")


PARENTS: dict[str, set[str | None]] = {
    "conversation": {None},
    "fan-out": {"conversation"},
    "child": {"fan-out", "conversation", "attempt"},
    "attempt": {"child"},
    "call": {"attempt"},
}
"""Under what each kind of span stands."""


def _id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def _kind(span: ReadableSpan) -> str:
    if span.name == "invoke_agent parent":
        return "conversation"
    if span.kind is SpanKind.CLIENT:
        return "call"
    operation = span.name.partition(" ")[0]
    return {"invoke_workflow": "fan-out", "invoke_agent": "child", "dispatch": "attempt"}[operation]


def a_span_is_an_error_if_and_only_if_it_says_of_which_type(life: Life) -> None:
    ends = {outcome.run_id: outcome for outcome in outcomes_of(life)}
    for span in life.spans.ended:
        attributes = span.attributes or {}
        error = attributes.get("error.type")
        if (span.status.status_code is StatusCode.ERROR) != (error is not None):
            raise Violation(f"{span.name}: {span.status.status_code} with {error}")
        outcome = ends.get(str(attributes.get("custodes.run.id")))
        if outcome is not None and (error is None) != (outcome.status == "done"):
            raise Violation(f"{span.name}: {error} for {outcome}")


# -- What is left


def nothing_is_left(life: Life) -> None:
    if held := {what: number for what, number in life.remains.items() if number}:
        raise Violation(f"still taken: {held}")
    living = {one.call.run_id for one in life.leftovers if one.call.gone is None and one.call.request.mutable}
    if living != {lease.run_id for lease in life.leases if lease.held and lease.left}:
        raise Violation(f"{living} left something, and held are {life.leases}")
    if any(not lease.left for lease in life.leases):
        raise Violation(f"a scope is still held: {life.leases}")
    for pool in life.pools.values():
        if pool.lease is not None and WALL + life.ended_at < pool.lease.deadline.wall:
            raise Violation(f"a probe's lease is left: {pool}")


INVARIANTS = (
    outcomes_stand_in_the_order_asked,
    every_child_ends_once_and_every_cancel_gets_that_answer,
    the_store_has_one_terminal_record_of_every_child,
    one_writer_has_a_scope_at_a_time,
    mutable_work_is_never_done_twice,
    nested_work_ends_before_the_work_that_asked_for_it,
    a_runtime_is_called_only_behind_its_row,
    success_has_evidence_and_a_runtime_that_said_so,
    one_probe_of_a_pool_lives_at_a_time,
    nobody_is_let_into_a_pool_that_cools,
    nothing_is_let_in_while_supervision_is_disabled,
    budgets.a_budget_is_never_over_reserved,
    budgets.a_budget_is_settled_to_the_last_token,
    budgets.nothing_starts_past_a_hard_limit,
    budgets.those_asked_for_first_get_what_there_is,
    every_span_ends_once_under_its_own_parent,
    a_span_is_an_error_if_and_only_if_it_says_of_which_type,
    nothing_is_left,
)
