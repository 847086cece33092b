from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.adapters.descriptor import Model
from custodes.policy import Catalog, Policy, Resolution, RouteRequest, Target, resolve
from custodes.policy.history import Record
from custodes.policy.policy import FallbackPolicy
from custodes.policy.roles import ROLE_DEFAULTS
from support.catalogs import CLAUDE, CODEX, PLAIN, catalog, descriptor, unready

BOTH = catalog(CLAUDE, CODEX)
POLICIES: tuple[FallbackPolicy, ...] = ("fail_closed", "same_adapter_default", "next_eligible")


def routes(resolution: Resolution) -> list[tuple[str, str | None]]:
    return [(r.adapter, r.model) for r in resolution.candidates]


def test_nothing_configured_runs_the_first_ready_adapter_on_its_defaults() -> None:
    (route,) = resolve(RouteRequest(role="reviewer"), Policy(enabled=True), BOTH).candidates
    assert (route.adapter, route.model, route.pool) == ("claude", "claude-opus-4-8", "claude:opus-4x")
    assert route.effort == ROLE_DEFAULTS["reviewer"].effort
    assert route.timeout_s == ROLE_DEFAULTS["reviewer"].timeout_s
    assert route.provenance == {
        "adapter": "adapter_default",
        "model": "adapter_default",
        "effort": "role_default",
        "timeout": "role_default",
    }


def test_the_session_default_comes_before_the_order_of_agents() -> None:
    (route,) = resolve(RouteRequest(role="reviewer"), Policy(), BOTH, session="codex").candidates
    assert (route.adapter, route.model, route.pool) == ("codex", None, "codex")


def test_without_a_session_an_unready_adapter_is_no_default() -> None:
    view = catalog(unready(CLAUDE, "not logged in"), CODEX)
    assert routes(resolve(RouteRequest(role="reviewer"), Policy(), view)) == [("codex", None)]


def test_each_field_comes_from_the_highest_step_that_names_it() -> None:
    policy = Policy(
        orchestrator=Target(adapter="claude", model="claude-sonnet-5", effort="medium"),
        roles={"reviewer": Target(model="claude-haiku-4-5")},
    )
    (route,) = resolve(RouteRequest(role="reviewer", effort="low", timeout=7), policy, BOTH).candidates
    assert (route.adapter, route.model, route.effort, route.timeout_s) == (
        "claude",
        "claude-haiku-4-5",
        "low",
        7,
    )
    assert route.provenance == {
        "adapter": "orchestrator",
        "model": "role",
        "effort": "request",
        "timeout": "request",
    }


def test_an_inherited_model_does_not_cross_to_an_adapter_that_does_not_declare_it() -> None:
    policy = Policy(
        orchestrator=Target(model="claude-sonnet-5", effort="medium"),
        roles={"implementer": Target(adapter="codex")},
    )
    (route,) = resolve(RouteRequest(role="implementer"), policy, BOTH).candidates
    assert (route.adapter, route.model, route.effort) == ("codex", None, "medium")
    assert route.provenance["model"] == "adapter_default"
    assert route.provenance["effort"] == "orchestrator"


def test_a_model_that_was_named_without_an_adapter_goes_to_the_adapter_that_declares_it() -> None:
    (route,) = resolve(
        RouteRequest(role="analyst", model="claude-haiku-4-5"), Policy(), BOTH, "codex"
    ).candidates
    assert route.adapter == "claude"


def test_an_empty_catalog_passes_any_model_on() -> None:
    (route,) = resolve(
        RouteRequest(role="analyst", adapter="codex", model="gpt-9-x"), Policy(), BOTH
    ).candidates
    assert (route.model, route.provenance["model"]) == ("gpt-9-x", "request")


def test_a_misspelt_model_is_not_passed_on_by_an_adapter_that_nobody_named() -> None:
    resolution = resolve(
        RouteRequest(role="analyst", model="claude-haiku-4.5"), Policy(), BOTH, session="codex"
    )
    assert resolution.candidates == ()
    assert resolution.refusal is not None
    assert "did you mean 'claude-haiku-4-5'?" in resolution.refusal.detail


@pytest.mark.parametrize("where", ["request", "role", "orchestrator"])
def test_a_pinned_model_that_does_not_exist_is_refused_and_never_swapped(where: str) -> None:
    pin = Target(adapter="claude", model="claude-haiku-4-6")
    request = RouteRequest(role="reviewer")
    if where == "request":
        request = RouteRequest(role="reviewer", adapter=pin.adapter, model=pin.model)
    policy = Policy(
        roles={"reviewer": pin} if where == "role" else {},
        orchestrator=pin if where == "orchestrator" else Target(),
    )
    resolution = resolve(request, policy, BOTH)
    assert resolution.candidates == ()
    assert resolution.refusal is not None
    assert resolution.refusal.category == "invalid"
    assert resolution.refusal.wording == "model 'claude-haiku-4-6' is not declared by adapter 'claude'"
    assert "did you mean 'claude-haiku-4-5'?" in resolution.refusal.detail


@pytest.mark.parametrize("fallback", POLICIES)
def test_no_single_adapter_with_both_model_and_effort_is_refused(fallback: FallbackPolicy) -> None:
    request = RouteRequest(role="reviewer", model="claude-haiku-4-5", effort="minimal")
    resolution = resolve(request, Policy(fallback_policy=fallback), BOTH)
    assert resolution.candidates == ()
    assert resolution.refusal is not None
    assert (
        resolution.refusal.wording
        == "no single adapter has both model 'claude-haiku-4-5' and effort 'minimal'"
    )


def test_an_effort_that_an_adapter_cannot_select_is_refused_in_the_words_of_the_playbook() -> None:
    resolution = resolve(
        RouteRequest(role="reviewer", adapter="plain", effort="low"), Policy(), catalog(PLAIN)
    )
    assert resolution.refusal is not None
    assert resolution.refusal.wording == "adapter 'plain' does not support effort selection"


def test_an_orchestrators_effort_does_not_bind_the_adapter_that_a_request_names() -> None:
    policy = Policy(orchestrator=Target(effort="medium"))
    (route,) = resolve(
        RouteRequest(role="reviewer", adapter="plain"), policy, catalog(CLAUDE, PLAIN)
    ).candidates
    assert (route.adapter, route.effort, route.provenance["effort"]) == ("plain", None, "adapter_default")


def test_an_unknown_role_is_refused_with_the_near_miss() -> None:
    resolution = resolve(RouteRequest(role="reviwer"), Policy(), BOTH)
    assert resolution.refusal is not None
    assert "'reviewer'" in resolution.refusal.wording


def test_a_pinned_model_under_same_adapter_default_has_the_default_model_as_a_candidate() -> None:
    policy = Policy(
        fallback_policy="same_adapter_default", roles={"reviewer": Target(model="claude-haiku-4-5")}
    )
    resolution = resolve(RouteRequest(role="reviewer"), policy, BOTH)
    assert [r.pool for r in resolution.candidates] == ["claude:haiku-4-5", "claude:opus-4x"]
    assert resolution.candidates[1].provenance["model"] == "fallback"
    assert not resolution.rerouted


def test_a_default_model_that_was_already_asked_for_is_no_second_candidate() -> None:
    policy = Policy(fallback_policy="same_adapter_default")
    resolution = resolve(RouteRequest(role="reviewer"), policy, BOTH)
    assert len(resolution.candidates) == 1
    assert [p.adapter for p in resolution.passed_over] == ["claude"]


def test_next_eligible_offers_the_others_and_leaves_an_inherited_model_behind() -> None:
    policy = Policy(
        fallback_policy="next_eligible", orchestrator=Target(model="claude-sonnet-5", effort="low")
    )
    resolution = resolve(RouteRequest(role="reviewer"), policy, BOTH)
    assert routes(resolution) == [("claude", "claude-sonnet-5"), ("codex", None)]
    assert resolution.candidates[1].provenance["adapter"] == "fallback"
    assert resolution.candidates[1].effort == "low"


def test_a_wanted_effort_that_the_only_fallback_lacks_makes_it_ineligible_with_the_reason() -> None:
    policy = Policy(fallback_policy="next_eligible", orchestrator=Target(adapter="claude", effort="max"))
    resolution = resolve(RouteRequest(role="reviewer"), policy, BOTH)
    assert routes(resolution) == [("claude", "claude-opus-4-8")]
    assert [str(p) for p in resolution.passed_over] == [
        "effort 'max' is not listed by adapter 'codex'; Known: minimal, low, medium, high, xhigh"
    ]


def test_a_pinned_model_is_never_passed_on_blindly_to_a_fallback() -> None:
    policy = Policy(fallback_policy="next_eligible", roles={"reviewer": Target(model="claude-haiku-4-5")})
    resolution = resolve(RouteRequest(role="reviewer"), policy, BOTH)
    assert routes(resolution) == [("claude", "claude-haiku-4-5")]
    assert [str(p) for p in resolution.passed_over] == [
        "model 'claude-haiku-4-5' is not declared by adapter 'codex'"
    ]


@pytest.mark.parametrize("fallback", POLICIES)
@pytest.mark.parametrize(
    ("view", "why"),
    [
        (catalog(CODEX), "no adapter has this id"),
        (catalog(CODEX, ineligible={"claude": "it does not declare dispatch"}), "does not declare dispatch"),
        (catalog(unready(CLAUDE, "claude was not found on PATH"), CODEX), "not found on PATH"),
        (catalog(unready(CLAUDE, "not logged in"), CODEX), "not logged in"),
        (catalog(unready(CLAUDE, "billing"), CODEX), "billing"),
    ],
    ids=["absent", "without dispatch", "not installed", "auth", "billing"],
)
def test_only_next_eligible_moves_on_from_an_adapter_that_cannot_run(
    fallback: FallbackPolicy, view: Catalog, why: str
) -> None:
    policy = Policy(fallback_policy=fallback, roles={"reviewer": Target(adapter="claude")})
    resolution = resolve(RouteRequest(role="reviewer"), policy, view)
    (passed,) = resolution.passed_over
    assert "no eligible dispatch adapter for 'claude'" in passed.reason
    assert why in passed.reason
    if fallback == "next_eligible":
        assert routes(resolution) == [("codex", None)]
        assert resolution.rerouted
        assert resolution.others == (passed,)
        assert resolution.refusal is None
        assert resolution.denial is not None
        assert resolution.denial.category == "unavailable"
    else:
        assert resolution.candidates == ()
        assert resolution.others == ()  # the refusal says it
        assert resolution.refusal is not None
        assert resolution.refusal.category == "unavailable"
        assert resolution.refusal.wording == "no eligible dispatch adapter for 'claude'"


def test_without_any_agent_the_refusal_says_what_to_configure() -> None:
    resolution = resolve(RouteRequest(role="reviewer"), Policy(), Catalog())
    assert resolution.refusal is not None
    assert ".coding-os.yaml::agents" in str(resolution.refusal)


def test_a_preset_hint_stands_below_the_contract_and_above_the_role_default() -> None:
    hints = {"reviewer": Target(model="claude-haiku-4-5", effort="low")}
    policy = Policy(preset="thrift", presets={"thrift": hints})
    (route,) = resolve(RouteRequest(role="reviewer"), policy, BOTH).candidates
    assert (route.model, route.effort) == ("claude-haiku-4-5", "low")
    assert route.provenance["model"] == route.provenance["effort"] == "preset"
    (route,) = resolve(RouteRequest(role="reviewer", model="claude-fable-5"), policy, BOTH).candidates
    assert route.model == "claude-fable-5"


def test_a_preset_hint_gives_way_where_the_adapter_cannot_follow() -> None:
    hints = {"reviewer": Target(adapter="gone", model="claude-haiku-4-5", effort="max")}
    policy = Policy(preset="thrift", presets={"thrift": hints})
    (route,) = resolve(RouteRequest(role="reviewer", adapter="codex"), policy, BOTH).candidates
    assert (route.adapter, route.model, route.effort) == ("codex", None, ROLE_DEFAULTS["reviewer"].effort)


def test_a_role_default_chooses_the_model_of_its_tier_where_the_catalog_declares_tiers() -> None:
    tiered = descriptor(
        "tiered", (Model(id="big", default=True, tier="deep"), Model(id="small", tier="fast"))
    )
    (route,) = resolve(RouteRequest(role="observer"), Policy(), catalog(tiered)).candidates
    assert (route.model, route.provenance["model"]) == ("small", "role_default")


def attempts(adapter: str, model: str | None, good: int, bad: int) -> tuple[Record, ...]:
    return tuple(
        Record(role="reviewer", adapter=adapter, model=model, succeeded=i < good, seconds=1.0)
        for i in range(good + bad)
    )


def test_history_moves_a_role_only_once_both_choices_have_enough_attempts() -> None:
    request = RouteRequest(role="reviewer")
    bad = attempts("claude", None, 5, 20)
    good = attempts("codex", None, 20, 0)
    assert routes(resolve(request, Policy(), BOTH, records=good)) == [("claude", "claude-opus-4-8")]
    (route,) = resolve(request, Policy(), BOTH, records=bad + good).candidates
    assert (route.adapter, route.provenance["adapter"]) == ("codex", "history")


def test_history_chooses_a_better_model_below_every_policy() -> None:
    records = attempts("claude", "claude-opus-4-8", 5, 20) + attempts("claude", "claude-sonnet-5", 25, 0)
    (route,) = resolve(RouteRequest(role="reviewer"), Policy(), catalog(CLAUDE), records=records).candidates
    assert (route.model, route.provenance["model"]) == ("claude-sonnet-5", "history")
    pinned = Policy(orchestrator=Target(model="claude-haiku-4-5"))
    (route,) = resolve(RouteRequest(role="reviewer"), pinned, catalog(CLAUDE), records=records).candidates
    assert route.model == "claude-haiku-4-5"


NAMES = st.sampled_from(["", "claude", "codex", "plain", "gone"])
MODELS = st.sampled_from(["", "claude-opus-4-8", "claude-haiku-4-5", "gpt-9", "claude-haiku-4-6"])
EFFORTS = st.sampled_from(["", "low", "max", "minimal", "odd"])
TARGETS = st.builds(Target, adapter=NAMES, model=MODELS, effort=EFFORTS)


@given(
    request_=st.builds(RouteRequest, role=st.just("reviewer"), adapter=NAMES, model=MODELS, effort=EFFORTS),
    role=TARGETS,
    orchestrator=TARGETS,
    hint=TARGETS,
    fallback=st.sampled_from(POLICIES),
    session=st.sampled_from(["", "claude", "codex", "plain", "gone"]),
)
def test_whatever_is_configured_no_candidate_breaks_its_adapters_contract(
    request_: RouteRequest,
    role: Target,
    orchestrator: Target,
    hint: Target,
    fallback: FallbackPolicy,
    session: str,
) -> None:
    view = catalog(CLAUDE, CODEX, PLAIN)
    policy = Policy(
        roles={"reviewer": role},
        orchestrator=orchestrator,
        preset="p",
        presets={"p": {"reviewer": hint}},
        fallback_policy=fallback,
    )
    resolution = resolve(request_, policy, view, session)
    assert (resolution.refusal is None) == bool(resolution.candidates)
    for route in resolution.candidates:
        adapter = view.find(route.adapter)
        assert adapter is not None
        found = adapter.descriptor
        if route.model is not None:
            assert found.can("model_selection")
            assert not found.models or found.model(route.model)
        if route.effort is not None:
            assert route.effort in found.efforts
        pin = request_.model or ("" if request_.adapter else role.model)
        if pin:
            assert route.model == pin or route.provenance["model"] == "fallback"
    if fallback == "fail_closed":
        assert len(resolution.candidates) <= 1
    named = request_.adapter or role.adapter or orchestrator.adapter
    if named and fallback != "next_eligible":
        assert all(route.adapter == named for route in resolution.candidates)
