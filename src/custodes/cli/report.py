"""The end of a run: each child's evidence or reason, and the totals; the same data as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from custodes.cli.budget_words import spent_words
from custodes.cli.explain import estimate_words
from custodes.cli.output import DONE, FAILED, counted, paint, plain, write
from custodes.policy.explain import Estimate
from custodes.policy.routing import Route
from custodes.supervision.budgets.budget import Spending
from custodes.supervision.bundle import BacktrackTold
from custodes.supervision.event_words import pool_and_model
from custodes.supervision.evidence import Evidence
from custodes.supervision.work import Attempt, Outcome

_STYLES = {"done": "green", "skipped": "dim", "cancelled": "yellow", "refused": "yellow"}
_NEVER_TRIED = ("invalid", "unavailable", "auth")
"""What keeps a route from being tried at all, and nobody is told of before an attempt; a limit is."""
_SHOWN = 5
"""How many entries of one kind the text shows; JSON has them all."""


class PoolTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What one pool was asked for."""

    attempts: int
    limits: int
    probes: int


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """``fallbacks`` counts the children of which an attempt stood in for another route. ``seconds`` is wall
    time. Tokens and cost sum what the runtimes reported; None where none did."""

    children: int
    by_status: dict[str, int]
    attempts: int
    fallbacks: int
    probes: int
    limits: int
    seconds: float
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    pools: dict[str, PoolTotals] = {}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    status: str
    outcomes: tuple[Outcome, ...]
    totals: Totals
    conversation: str = ""
    """Under which it is on record; empty where there is none."""
    spent: Spending | None = None
    """What was spent of the plan's budget; None for one piece of work, and where the run was cancelled."""
    plan_run: str = ""
    """By which a plan is gone on with; empty for one that is not on record, and for no plan."""
    uncertain: tuple[str, ...] = ()
    """The plan's steps that an operator has to resolve."""
    backtracks: tuple[BacktrackTold, ...] = ()
    """What the plan's steps found wrong with earlier ones, and what came of it."""

    @property
    def code(self) -> int:
        return DONE if self.status == "done" else FAILED


def report_of(
    name: str,
    outcomes: Sequence[Outcome],
    seconds: float,
    *,
    cancelled: bool = False,
    conversation: str = "",
    spent: Spending | None = None,
    plan_run: str = "",
    uncertain: tuple[str, ...] = (),
    backtracks: tuple[BacktrackTold, ...] = (),
) -> Report:
    """``done`` where every child ended well (a dry run counts), else what went wrong."""
    well = all(outcome.status in ("done", "skipped") for outcome in outcomes)
    return Report(
        name=name,
        status="cancelled" if cancelled else "done" if well else "failed",
        outcomes=tuple(outcomes),
        totals=totals_of(outcomes, seconds),
        conversation="" if not plan_run and outcomes and all(map(ran_plainly, outcomes)) else conversation,
        spent=spent,
        plan_run=plan_run,
        uncertain=uncertain,
        backtracks=backtracks,
    )


def totals_of(outcomes: Sequence[Outcome], seconds: float) -> Totals:
    attempts = [attempt for outcome in outcomes for attempt in outcome.attempts]
    usages = [attempt.usage for attempt in attempts if attempt.usage is not None]

    def total(field: str) -> int | float | None:
        known = [value for usage in usages if (value := getattr(usage, field)) is not None]
        return sum(known) if known else None

    return Totals(
        children=len(outcomes),
        by_status=dict(Counter(outcome.status for outcome in outcomes)),
        attempts=len(attempts),
        fallbacks=sum(any(a.fallback_reason for a in outcome.attempts) for outcome in outcomes),
        probes=sum(attempt.health_probe for attempt in attempts),
        limits=sum(map(_met_a_limit, attempts)),
        seconds=round(seconds, 3),
        input_tokens=total("input_tokens"),  # type: ignore[arg-type]  # a sum of integers
        output_tokens=total("output_tokens"),  # type: ignore[arg-type]
        cost_usd=total("cost_usd"),
        pools={
            pool: _pool_totals([a for a in attempts if a.pool == pool])
            for pool in {a.pool: 0 for a in attempts}
        },
    )


def _pool_totals(attempts: Sequence[Attempt]) -> PoolTotals:
    return PoolTotals(
        attempts=len(attempts),
        limits=sum(map(_met_a_limit, attempts)),
        probes=sum(attempt.health_probe for attempt in attempts),
    )


def _met_a_limit(attempt: Attempt) -> bool:
    return attempt.failure is not None and attempt.failure.category == "capacity"


def ran_plainly(outcome: Outcome) -> bool:
    """Below the adaptive gate: a runtime was called past the breaker, and nothing of it is on record."""
    return not outcome.attempts and bool(outcome.metadata)


def write_report(report: Report) -> None:
    for outcome in report.outcomes:
        write()
        name = paint(plain(outcome.name), "bold")
        write(f"{name}  {outcome.role}  {_status(outcome)}  {_where(outcome)}".rstrip())
        for text in _body(outcome):
            write(f"  {text}")
    write()
    for told in report.backtracks:
        write(backtrack_line(told))
    if report.totals.pools:
        write(f"pools: {'; '.join(_pool(name, pool) for name, pool in report.totals.pools.items())}")
    if report.spent is not None and (words := tuple(spent_words(report.spent))):
        write(f"budget: {', '.join(words)}")
    if report.conversation:
        write(f"conversation: {report.conversation}")
    if report.plan_run:
        write(f"plan run: {report.plan_run}")
    write(_totals(report))
    for text in _what_next(report):
        write(text)


def _what_next(report: Report) -> Iterator[str]:
    """The choices that a plan which did not end well leaves."""
    if not report.plan_run or report.status == "done":
        return
    yield from resolutions(report.plan_run, report.uncertain)
    yield f"`cos run --resume {report.plan_run}` goes on with what is not done"


def backtrack_line(told: BacktrackTold) -> str:
    came = "followed" if told.followed else f"not followed: {plain(told.why_not)}"
    return f"{plain(told.name)} found {plain(told.step)} wrong ({came}): {plain(told.reason)}"


def resolutions(plan_run: str, uncertain: Sequence[str]) -> Iterator[str]:
    """How an operator says what became of each of these steps."""
    for step in uncertain:
        command = f"cos runs resolve {plan_run} {plain(step)}"
        yield (
            f"nobody knows how {plain(step)} ended: look, then `{command} done` keeps it, and "
            f"`{command} failed` lets it run again"
        )


def _status(outcome: Outcome) -> str:
    return paint(outcome.status, _STYLES.get(outcome.status, "red"))


def _where(outcome: Outcome) -> str:
    if ran_plainly(outcome):
        return paint(
            "plainly, since it is below the adaptive mode's gate: not supervised, not on record", "dim"
        )
    if not outcome.attempts:
        return ""
    last = outcome.attempts[-1]
    model = f" {plain(last.model)}" if last.model else ""
    return paint(f"{last.pool}{model}  {last.seconds:.1f} s", "dim")


def _body(outcome: Outcome) -> Iterator[str]:
    if outcome.attempts and (why := outcome.attempts[0].fallback_reason) in _NEVER_TRIED:
        yield (
            f"what was asked for could not run ({why}): `cos supervision explain --role {outcome.role}`, "
            "with the same --on and --model, says why"
        )
    if outcome.evidence is not None:
        yield plain(outcome.evidence.summary)
        yield from _details(outcome.evidence)
    if outcome.failure is not None:
        yield f"{outcome.failure.category}: {plain(outcome.failure.reason)}"
        if outcome.status == "unknown":
            yield "it may have had an effect, so it is never run again by itself; look at its scope first"
    if (refusal := outcome.refusal) is not None:
        yield f"{refusal.category}: {plain(refusal.reason)}"
        for wait in refusal.waiting:
            yield f"{wait.pool} is {wait.state.replace('_', ' ')}, {wait.recovery_s} s: {plain(wait.reason)}"
        for reason in refusal.passed_over:
            yield f"passed over: {plain(reason)}"
        if refusal.retry_after_s is not None:
            yield f"the soonest recovery is in {refusal.retry_after_s} s; --wait lets it wait for that"
    if outcome.output_json is not None:
        route = msgspec.convert(outcome.output_json["proposed_route"], Route)
        effort = f", effort {route.effort}" if route.effort else ""
        yield f"would run on {plain(pool_and_model(route.pool, route.model))}{effort}, {route.timeout_s:g} s"
        if (estimate := outcome.output_json.get("estimate")) is not None:
            yield f"estimate: {estimate_words(msgspec.convert(estimate, Estimate))}"


def _details(evidence: Evidence) -> Iterator[str]:
    """The entries of a slice that has any, one line each, whatever its role."""
    for field in evidence.__struct_fields__:
        value = getattr(evidence, field)
        if field == "summary" or not value:
            continue
        if not isinstance(value, tuple):
            yield f"{field.replace('_', ' ')}: {plain(_entry(value))}"
            continue
        for entry in value[:_SHOWN]:
            yield f"- {plain(_entry(entry))}"
        if len(value) > _SHOWN:
            yield f"  and {len(value) - _SHOWN} more {field.replace('_', ' ')}"


def _entry(entry: object) -> str:
    if not isinstance(entry, msgspec.Struct):
        return str(entry)
    words = []
    for field in sorted(entry.__struct_fields__, key=lambda field: field not in ("place", "name")):
        value = getattr(entry, field)
        if isinstance(value, bool):
            words.append(field if value else f"not {field}")
        elif value not in ("", (), None):
            words.append(str(value))
    return ", ".join(words)


def _totals(report: Report) -> str:
    totals = report.totals
    words = [f"{count} {status}" for status, count in totals.by_status.items()]
    words.append(counted(totals.attempts, "attempt"))
    words += [counted(count, noun) for noun, count in _rare(totals) if count]
    if totals.input_tokens is not None or totals.output_tokens is not None:
        words.append(f"{totals.input_tokens or 0} tokens in, {totals.output_tokens or 0} out")
    if totals.cost_usd is not None:
        words.append(f"{totals.cost_usd:.4f} USD")
    words.append(f"{totals.seconds:.1f} s")
    style = "green" if report.status == "done" else "red"
    return f"{paint(report.name + ' ' + report.status, style)}: {', '.join(words)}"


def _rare(totals: Totals) -> tuple[tuple[str, int], ...]:
    return (
        ("limit", totals.limits),
        ("fallback", totals.fallbacks),
        ("probe", totals.probes),
    )


def _pool(name: str, pool: PoolTotals) -> str:
    words = [counted(pool.attempts, "attempt")]
    words += [
        counted(count, noun) for noun, count in (("limit", pool.limits), ("probe", pool.probes)) if count
    ]
    return f"{plain(name)} {', '.join(words)}"
