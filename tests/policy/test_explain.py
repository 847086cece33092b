from __future__ import annotations

import pytest

from custodes.adapters.descriptor import Model, Price
from custodes.policy import ROLE_DEFAULTS, ROLES, Policy, RouteRequest, Target, explain
from custodes.policy.policy import Mode
from support.catalogs import CLAUDE, CODEX, catalog, descriptor


@pytest.mark.parametrize(
    "request_",
    [
        RouteRequest(role="reviewer"),
        RouteRequest(role="reviewer", adapter="codex", model="gpt-9", effort="minimal", timeout=5),
        RouteRequest(role="reviewer", model="claude-haiku-4-5"),
        RouteRequest(role="reviewer", effort="max"),
    ],
)
def test_suggest_proposes_the_route_that_explicit_would_run(request_: RouteRequest) -> None:
    def proposed(mode: Mode) -> object:
        policy = Policy(enabled=True, mode=mode, orchestrator=Target(model="claude-sonnet-5"))
        return explain(request_, None, policy, True, catalog(CLAUDE, CODEX)).proposed

    assert proposed("suggest") is not None
    assert proposed("suggest") == proposed("explicit")


def test_the_decision_is_the_triggers() -> None:
    policy = Policy(enabled=True, mode="adaptive")
    assert (
        explain(RouteRequest(role="reviewer"), "clear", policy, True, catalog(CLAUDE)).decision
        == "below_gate"
    )


def test_an_estimate_states_its_source_and_has_no_cost_without_a_price() -> None:
    found = explain(RouteRequest(role="reviewer"), None, Policy(), True, catalog(CLAUDE)).estimate
    assert found is not None
    assert (found.input_tokens, found.cost_usd) == (ROLE_DEFAULTS["reviewer"].input_tokens, None)
    assert "no declared price" in found.source


def test_an_estimate_multiplies_the_roles_tokens_with_the_models_price() -> None:
    price = Price(input=1.0, output=10.0, source="price list", date="2026-11-01")
    priced = descriptor("priced", (Model(id="m", price=price),))
    found = explain(RouteRequest(role="observer"), None, Policy(), True, catalog(priced)).estimate
    defaults = ROLE_DEFAULTS["observer"]
    assert found is not None
    assert found.cost_usd == pytest.approx((defaults.input_tokens + 10 * defaults.output_tokens) / 1e6)
    assert "price list, 2026-11-01" in found.source


def test_what_cannot_run_has_no_proposal_and_no_estimate() -> None:
    found = explain(RouteRequest(role="reviewer", adapter="gone"), None, Policy(), True, catalog(CLAUDE))
    assert found.proposed is None
    assert found.estimate is None
    assert found.resolution.refusal is not None


def test_every_role_has_defaults_with_a_reason() -> None:
    assert set(ROLE_DEFAULTS) == set(ROLES)
    assert len(ROLES) == 11
    for defaults in ROLE_DEFAULTS.values():
        assert defaults.reason.endswith(".")
        assert defaults.timeout_s > 0
    assert {role for role in ROLES if ROLE_DEFAULTS[role].mutable} == {
        "documenter",
        "implementer",
        "debugger",
        "deployer",
        "refactorer",
    }
