"""What must hold of every budget: reckoned again from what the runtime saw, by none of the ledger's rules."""

from __future__ import annotations

import math

from support.fan_outs.life import ADMISSION_S, MORE_S, Call, Fan, Life, Used, calls_by_run
from support.puppets import Violation


def a_budget_is_never_over_reserved(life: Life) -> None:
    """At every call: what was spent, and what is in flight at its estimate or at what it was seen to use."""
    for told in life.fans:
        calls = _calls_of(life, told)
        for kind, limit in enumerate(_limits(told)):
            for place, call in enumerate(calls):
                taken = sum(_taken_at(call.began, other)[kind] for other in calls[: place + 1])
                if limit is not None and taken > limit:
                    raise Violation(f"{taken} of {limit} with {call} in {told.budget}")


def a_budget_is_settled_to_the_last_token(life: Life) -> None:
    for told in life.fans:
        ledger = told.fan.ledger
        if ledger.reserved.tokens or ledger.reserved.usd:
            raise Violation(f"still reserved: {ledger}")
        spent = (ledger.spent.tokens, round(ledger.spent.usd / 10_000_000))
        for kind, limit in enumerate(_limits(told)):
            used = sum(_used(call)[kind] for call in _calls_of(life, told))
            if limit is not None and spent[kind] != used:
                raise Violation(f"{spent[kind]} spent where the calls come to {used}: {ledger}")


def nothing_starts_past_a_hard_limit(life: Life) -> None:
    for told in life.fans:
        budget, calls = told.budget, _calls_of(life, told)
        own = {call.run_id for call in calls if call.run_id not in life.nested}
        if budget.children is not None and len(own) > budget.children:
            raise Violation(f"more than {budget.children} children ran: {calls}")
        if budget.wall_seconds is None:
            continue
        until = told.opened_at + budget.wall_seconds
        for call in calls:
            if call.at > until + ADMISSION_S:
                raise Violation(f"started at {call.at}, with {until} the deadline: {call}")
            if budget.when_spent == "stop" and not (call.ended_at or math.inf) <= until + MORE_S:
                raise Violation(f"not stopped at {until}: {call}")


def those_asked_for_first_get_what_there_is(life: Life) -> None:
    """One that is refused for want of tokens or USD before it ran found too little left by those before it,
    whatever those after it took; unless one of them used more than it was reckoned at, or asked for work of
    its own."""
    calls = calls_by_run(life)
    for told in life.fans:
        ids = {asked.child.run_id for asked in told.asked}
        if any(ids & {*life.ancestors(run_id)} for run_id in life.nested):
            continue  # what waits has something set aside for it, and need not be called to
        if any(_most(_used(call), call.estimate) != call.estimate for call in _calls_of(life, told)):
            continue
        before: Used = (0, 0)
        for asked, outcome in zip(told.asked, told.outcomes, strict=True):
            need = life.estimates[outcome.run_id]
            short = outcome.refusal.shortfall if outcome.refusal is not None else None
            if short is not None and short.limit in METERED and not outcome.attempts:
                kind = METERED.index(short.limit)
                limit = _limits(told)[kind]
                if limit is not None and before[kind] < limit and before[kind] + need[kind] <= limit:
                    raise Violation(f"{asked.work} was refused with {before} of {told.budget} taken")
            for call in calls[outcome.run_id]:
                before = _sum(before, _used(call))
            before = _sum(before, need)


METERED = ("tokens", "usd")


def _sum(one: Used, other: Used) -> Used:
    return one[0] + other[0], one[1] + other[1]


def _calls_of(life: Life, told: Fan) -> list[Call]:
    ids = {asked.child.run_id for asked in told.asked}
    return [call for call in life.calls if ids & {call.run_id, *life.ancestors(call.run_id)}]


def _limits(told: Fan) -> tuple[int | None, int | None]:
    """Of tokens and of cents."""
    return told.budget.tokens, None if told.budget.usd is None else round(told.budget.usd * 100)


def _taken_at(tick: int, call: Call) -> Used:
    if call.returned is not None and call.returned <= tick:
        return _used(call)
    return _most(call.estimate, *(used for at, used in call.told if at <= tick))


def _used(call: Call) -> Used:
    """What it comes to once it has ended: what its result says; else its estimate, or what was seen where
    that is more; nothing more than what was seen where it is known to have done nothing."""
    if call.final is not None:
        return call.final
    seen = [used for _, used in call.told]
    failure = call.failure
    if failure is not None and failure.outcome == "known_failed" and not call.accepted:
        return _most(*seen)
    return _most(call.estimate, *seen)


def _most(*used: Used) -> Used:
    return max((each[0] for each in used), default=0), max((each[1] for each in used), default=0)
