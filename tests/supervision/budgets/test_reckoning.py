"""What an attempt is reckoned at, source by source, and what reported usage comes to."""

from __future__ import annotations

from typing import Any

import pytest

from custodes.adapters.descriptor import Descriptor, Entrypoints, Model, Price
from custodes.adapters.port import Usage
from custodes.policy.history import Record
from custodes.policy.roles import ROLE_DEFAULTS
from custodes.policy.routing import Route
from custodes.supervision.budgets.budget import Measure
from custodes.supervision.budgets.reckoning import MINIMUM, measured, reckon, typical, unaccountable
from custodes.supervision.work import Work

PRICE = Price(input=1, output=10, source="a list", date="2026-01-01")
ROLE = ROLE_DEFAULTS["reviewer"]
TOKENS = ROLE.input_tokens + ROLE.output_tokens
COST = (ROLE.input_tokens * 1 + ROLE.output_tokens * 10) / 1_000_000
ROUTE = Route(
    role="reviewer", adapter="one", model="large", effort=None, timeout_s=60, pool="one:large", provenance={}
)


def work(**fields: Any) -> Work:
    return Work(role="reviewer", prompt="look", **fields)


def record(**fields: Any) -> Record:
    return Record(
        **{
            "role": "reviewer",
            "adapter": "one",
            "model": "large",
            "succeeded": True,
            "seconds": 1.0,
            **fields,
        }
    )


def descriptor(*capabilities: Any, price: Price | None = None) -> Descriptor:
    return Descriptor(
        id="one",
        runtime_entrypoints=Entrypoints(capabilities=("dispatch", *capabilities)),
        models=(Model(id="large", price=price),),
    )


def test_without_anything_else_it_is_the_roles_default_at_the_models_price() -> None:
    found = reckon(work(), ROUTE, descriptor(price=PRICE), Measure())
    assert found.tokens == TOKENS
    assert found.usd == pytest.approx(COST)
    assert found.tokens_from == "the reviewer's default"
    assert found.usd_from == "the reviewer's default at the price of a list, 2026-01-01"


def test_past_attempts_come_before_the_default_and_the_caller_before_both() -> None:
    past = Measure(tokens=1000, usd=0.5)
    found = reckon(work(), ROUTE, descriptor(price=PRICE), past)
    assert (found.tokens, found.usd) == (1000, 0.5)
    assert found.tokens_from == found.usd_from == "past attempts"
    found = reckon(work(estimate_tokens=7, estimate_usd=0.25), ROUTE, descriptor(price=PRICE), past)
    assert (found.tokens, found.usd) == (7, 0.25)
    assert found.tokens_from == found.usd_from == "the caller's estimate"


def test_tokens_alone_are_priced_in_the_roles_own_mix() -> None:
    found = reckon(work(estimate_tokens=2 * TOKENS), ROUTE, descriptor(price=PRICE), Measure())
    assert found.usd == pytest.approx(2 * COST)


def test_past_attempts_are_the_mean_of_the_same_role_on_the_same_model() -> None:
    alike = [record(tokens=100 + n, cost_usd=1.0) for n in range(MINIMUM)]
    other = [record(tokens=9999, cost_usd=9.0, model="small"), record(tokens=9999, role="analyst")]
    assert typical([*other, *alike], ROUTE) == Measure(tokens=102, usd=1.0)
    assert typical(alike[1:], ROUTE) == Measure()
    assert typical([record(tokens=5)] * MINIMUM, ROUTE) == Measure(tokens=5)


def test_usd_cannot_be_kept_without_cost_price_or_estimate() -> None:
    said = unaccountable(ROUTE, descriptor(), reckon(work(), ROUTE, descriptor(), Measure()))
    assert said is not None
    assert "'one' reports no cost and model 'large' has no declared price" in said
    assert "estimate_usd" in said
    estimated = reckon(work(estimate_usd=1.0), ROUTE, descriptor(), Measure())
    assert unaccountable(ROUTE, descriptor(), estimated) is None
    assert unaccountable(ROUTE, descriptor("cost"), reckon(work(), ROUTE, descriptor(), Measure())) is None
    priced = descriptor(price=PRICE)
    assert unaccountable(ROUTE, priced, reckon(work(), ROUTE, priced, Measure())) is None


def test_usage_without_a_cost_is_priced_and_without_anything_unknown() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000)
    assert measured(usage, PRICE) == Measure(tokens=1_100_000, usd=2.0)
    assert measured(usage, None) == Measure(tokens=1_100_000)
    assert measured(Usage(cost_usd=0.5), PRICE) == Measure(usd=0.5)
    assert measured(None, PRICE) == Measure()


@pytest.mark.parametrize("lie", [float("nan"), float("inf"), -1, "many"])
def test_a_figure_that_is_none_counts_as_not_reported(lie: Any) -> None:
    assert measured(Usage(cost_usd=lie, input_tokens=lie, output_tokens=3), None) == Measure(tokens=3)
