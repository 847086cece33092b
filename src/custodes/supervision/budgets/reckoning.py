"""What one attempt is reckoned at before it starts, and what its reported usage comes to after."""

from __future__ import annotations

import math
from collections.abc import Iterable

from custodes.adapters.descriptor import Descriptor, Price
from custodes.adapters.port import Usage
from custodes.policy.explain import estimate
from custodes.policy.history import Record
from custodes.policy.routing import Route
from custodes.supervision.budgets.budget import Measure
from custodes.supervision.work import Work

MINIMUM = 5
"""Attempts of one role on one model, below which what they took is an anecdote."""

_CALLER = "the caller's estimate"
_PAST = "past attempts"


def price_of(route: Route, descriptor: Descriptor) -> Price | None:
    """The declared price of the route's model, if it has one."""
    model = descriptor.model(route.model) if route.model else None
    return model.price if model else None


def typical(records: Iterable[Record], route: Route) -> Measure:
    """The mean of what attempts of this role on this model reported; None of either with too few."""
    alike = [r for r in records if (r.role, r.adapter, r.model) == (route.role, route.adapter, route.model)]
    tokens = [r.tokens for r in alike if r.tokens is not None]
    costs = [r.cost_usd for r in alike if r.cost_usd is not None]
    return Measure(
        tokens=math.ceil(sum(tokens) / len(tokens)) if len(tokens) >= MINIMUM else None,
        usd=sum(costs) / len(costs) if len(costs) >= MINIMUM else None,
    )


def reckon(work: Work, route: Route, descriptor: Descriptor, past: Measure) -> Measure:
    """Each amount from the caller, else from past attempts, else from the role's default; USD without either
    is the tokens at the model's declared price, split between in and out as the role's default is."""
    default = estimate(route, descriptor)
    usual = default.input_tokens + default.output_tokens if default is not None else None
    tokens, tokens_from = _first(
        (work.estimate_tokens, _CALLER), (past.tokens, _PAST), (usual, f"the {route.role}'s default")
    )
    usd, usd_from = _first((work.estimate_usd, _CALLER), (past.usd, _PAST))
    price = price_of(route, descriptor)
    if usd is None and price is not None and default is not None and default.cost_usd is not None:
        usd = default.cost_usd * (tokens or 0) / (usual or 1)
        usd_from = f"{tokens_from} at the price of {price.source}, {price.date}"
    return Measure(
        tokens=None if tokens is None else int(tokens), usd=usd, tokens_from=tokens_from, usd_from=usd_from
    )


def unaccountable(route: Route, descriptor: Descriptor, reckoned: Measure) -> str | None:
    """Why a budget in USD cannot be kept on this route, or None."""
    if descriptor.can("cost") or reckoned.usd is not None:
        return None
    model = f"model '{route.model}'" if route.model else "its own default model"
    return (
        f"adapter '{route.adapter}' reports no cost and {model} has no declared price; "
        "an estimate_usd on the work would do"
    )


def measured(usage: Usage | None, price: Price | None) -> Measure:
    """What was reported. A cost that was not is that of the reported tokens at the declared price, cached
    ones at the full one. What is no number of 0 or more counts as not reported."""
    if usage is None:
        return Measure()
    counted = [_figure(usage.input_tokens), _figure(usage.output_tokens)]
    known = [int(count) for count in counted if count is not None]
    usd = _figure(usage.cost_usd)
    if usd is None and price is not None and known:
        usd = ((counted[0] or 0) * price.input + (counted[1] or 0) * price.output) / 1_000_000
    return Measure(tokens=sum(known) if known else None, usd=usd)


def _figure(value: object) -> float | None:
    """An adapter's figure, which nobody has checked yet where it comes as progress."""
    return value if isinstance(value, int | float) and 0 <= value < 1e15 else None


def _first(*choices: tuple[float | None, str]) -> tuple[float | None, str]:
    return next(((value, source) for value, source in choices if value is not None), (None, ""))
