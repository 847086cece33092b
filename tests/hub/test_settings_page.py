"""The settings page: what it shows, what it saves, and what it does with what cannot be saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from custodes.policy.patch import PolicyPatch, TargetPatch
from custodes.policy.policy import Cooldown, Policy, Target, Telemetry
from custodes.policy.settings import Settings
from custodes.supervision.record.schema import DATABASE
from support import scripted
from support.cos import Cos, Tiered
from support.hub import Browser, form_of

pytestmark = pytest.mark.anyio


def policy(project: Path) -> Policy:
    return Settings(project).read().policy


async def text(page: Browser) -> str:
    return (await page.get("/settings")).text


async def test_disabled_it_shows_the_state_and_the_switch_and_hides_the_routing(
    page: Browser, tiered: Tiered
) -> None:
    shown = await text(page)
    assert "Supervision is off" in shown
    assert 'name="enabled" value="true"' in shown
    assert "<select" not in shown
    answer = await page.post(
        "/settings", {"section": "switch", "was.enabled": "false", "enabled": "true"}, script=False
    )
    assert answer.status_code == 303
    assert policy(tiered.project).enabled
    assert "<select" in await text(page)


async def test_a_shut_module_gate_is_said(page: Browser, pair: Path) -> None:
    path = Settings(pair).path
    path.write_text(json.dumps({**json.loads(path.read_text()), "cognition": {"enabled": False}}))
    assert "gate is shut" in await text(page)


async def test_every_key_of_the_policy_is_shown_set_and_cleared(page: Browser, pair: Path) -> None:
    await page.save("trigger", mode="adaptive", complexity_threshold="COMPLEX")
    await page.save(
        "orchestrator",
        orchestrator__adapter="alpha",
        orchestrator__model="large",
        orchestrator__effort="high",
    )
    await page.save("role-reviewer", roles__reviewer__adapter="beta", roles__reviewer__effort="low")
    await page.save("role-reviewer", roles__reviewer__model="small")
    await page.save(
        "limits", fallback_policy="next_eligible", max_parallel="7", max_live="70", ask_seconds="0"
    )
    await page.save(
        "telemetry",
        telemetry__relay="false",
        telemetry__prompts="true",
        telemetry__outputs="true",
        telemetry__tool_arguments="true",
    )
    await page.save(
        "cooldown",
        cooldown__default_seconds="10",
        cooldown__maximum_seconds="20",
        cooldown__retry_after_ceiling_seconds="30",
    )
    await page.save("new-hint", name="night", role="architect", presets__new__new__model="small")
    await page.save("preset", preset="night")
    expected = Policy(
        enabled=True,
        mode="adaptive",
        complexity_threshold="COMPLEX",
        fallback_policy="next_eligible",
        max_parallel=7,
        max_live=70,
        ask_seconds=0,
        telemetry=Telemetry(relay=False, prompts=True, outputs=True, tool_arguments=True),
        cooldown=Cooldown(default_seconds=10, maximum_seconds=20, retry_after_ceiling_seconds=30),
        orchestrator=Target(adapter="alpha", model="large", effort="high"),
        roles={"reviewer": Target(adapter="beta", model="small", effort="low")},
        preset="night",
        presets={"night": {"architect": Target(model="small")}},
    )
    assert policy(pair) == expected
    assert all(getattr(expected, name) != getattr(Policy(), name) for name in Policy.__struct_fields__)

    await page.save("trigger", mode="explicit", complexity_threshold="COMPLICATED")
    await page.save("limits", fallback_policy="fail_closed", max_parallel="", max_live="", ask_seconds="")
    await page.save(
        "telemetry",
        telemetry__relay="",
        telemetry__prompts="",
        telemetry__outputs="",
        telemetry__tool_arguments="",
    )
    await page.save(
        "cooldown",
        cooldown__default_seconds="",
        cooldown__maximum_seconds="",
        cooldown__retry_after_ceiling_seconds="",
    )
    await page.save("role-reviewer", roles__reviewer__effort="")
    assert policy(pair).roles["reviewer"] == Target(adapter="beta", model="small")
    await page.save("role-reviewer", clear="roles.reviewer")
    await page.save("orchestrator", clear="orchestrator")
    await page.save("preset", preset="")
    shown = await text(page)
    hint = shown.partition('id="s-hint-')[2].partition('"')[0]
    await page.save(f"hint-{hint}", clear_preset="night")
    assert policy(pair) == Policy(enabled=True)


async def test_only_configured_adapters_are_offered_and_one_that_is_not_ready_stays_with_its_reason(
    page: Browser, pair: Path
) -> None:
    (pair / ".coding-os" / "adapters" / "beta" / "adapter.yaml").write_text(
        scripted.ADAPTER_YAML.format(id="beta") + "# changed\n"
    )
    form = (await text(page)).partition('id="f-role-reviewer"')[2].partition("</form>")[0]
    assert 'value="alpha">alpha' in form
    assert 'value="beta" disabled>beta — unavailable: untrusted' in form
    assert 'value="claude"' not in form


async def test_one_adapter_hides_the_choice_and_keeps_model_and_effort(page: Browser, tiered: Tiered) -> None:
    Settings(tiered.project).patch(PolicyPatch(enabled=True), page.hub.project.catalog())
    shown = await text(page)
    assert 'name="roles.reviewer.adapter"' not in shown
    assert 'name="roles.reviewer.model"' in shown
    assert 'name="roles.reviewer.effort"' in shown
    assert (await page.save("role-reviewer", roles__reviewer__model="small-1")).status_code == 200
    assert policy(tiered.project).roles == {"reviewer": Target(model="small-1")}


async def test_a_stale_value_is_shown_and_labelled_and_blocks_no_other_edit(
    page: Browser, pair: Path
) -> None:
    scripted.configure(pair, roles={"reviewer": {"adapter": "gone", "model": "old"}})
    shown = await text(page)
    assert '<option value="gone" selected>gone — unavailable</option>' in shown
    assert "no eligible dispatch adapter for &#39;gone&#39;" in shown
    assert form_of(shown, "role-reviewer")["roles.reviewer.model"] == "old"
    assert (await page.save("limits", max_parallel="2")).status_code == 200
    assert policy(pair).roles["reviewer"] == Target(adapter="gone", model="old")


async def test_an_empty_catalog_gives_a_free_text(page: Browser, pair: Path) -> None:
    (pair / ".coding-os.yaml").write_text("agents: [alpha, opencode]\n")
    scripted.configure(pair, orchestrator={"adapter": "opencode"})
    assert '<input id="' in (
        form := (await text(page)).partition('id="f-orchestrator"')[2].partition("</form>")[0]
    )
    assert 'name="orchestrator.model" type="text"' in form
    assert (await page.save("orchestrator", orchestrator__model="any/model")).status_code == 200
    assert policy(pair).orchestrator.model == "any/model"


async def test_what_is_refused_is_said_beside_its_field_in_the_services_words_and_nothing_typed_is_lost(
    page: Browser, pair: Path
) -> None:
    answer = await page.save("limits", max_parallel="many", fallback_policy="next_eligible")
    assert answer.status_code == 422
    assert "is &#34;many&#34;; a whole number from 1 to 16 would work" in answer.text
    fields = form_of(answer.text, "limits")
    assert (fields["max_parallel"], fields["fallback_policy"]) == ("many", "next_eligible")
    assert fields["was.max_parallel"] == "3"
    assert policy(pair) == Policy(enabled=True)

    form = form_of(await text(page), "role-reviewer")
    form |= {"roles.reviewer.adapter": "alpha", "roles.reviewer.model": "no-such"}
    answer = await page.post("/settings", form, script=False)
    assert answer.status_code == 422
    assert "model &#39;no-such&#39; is not declared by adapter &#39;alpha&#39;" in answer.text
    assert form_of(answer.text, "role-reviewer")["roles.reviewer.model"] == "no-such"


async def test_a_preset_needs_a_name(page: Browser, pair: Path) -> None:
    answer = await page.save("new-hint", presets__new__new__model="small")
    assert answer.status_code == 422
    assert "a preset needs a name" in answer.text


async def test_an_edit_on_an_old_version_is_refused_with_both_values_and_can_then_be_made(
    page: Browser, pair: Path, cos: Cos
) -> None:
    old = form_of(await text(page), "limits")
    Settings(pair).patch(PolicyPatch(max_parallel=9), page.hub.project.catalog())
    answer = await page.post("/settings", {**old, "max_parallel": "5"})
    assert answer.status_code == 409
    assert "<dt>Saved now</dt><dd>9</dd><dt>Yours</dt><dd>5</dd>" in answer.text
    assert policy(pair).max_parallel == 9
    again = form_of(answer.text, "limits")
    assert again["max_parallel"] == "5"
    assert (await page.post("/settings", again)).status_code == 200
    assert policy(pair).max_parallel == 5


async def test_two_people_who_edit_different_fields_both_have_their_way(page: Browser, pair: Path) -> None:
    old = form_of(await text(page), "limits")
    Settings(pair).patch(PolicyPatch(fallback_policy="next_eligible"), page.hub.project.catalog())
    assert (await page.post("/settings", {**old, "max_parallel": "5"})).status_code == 200
    assert policy(pair) == Policy(enabled=True, max_parallel=5, fallback_policy="next_eligible")


async def test_choosing_an_adapter_shows_its_models_and_saves_nothing(page: Browser, pair: Path) -> None:
    (pair / ".coding-os.yaml").write_text("agents: [alpha, claude]\n")
    form = form_of(await text(page), "role-reviewer")
    answer = await page.post("/settings/preview", {**form, "roles.reviewer.adapter": "claude"})
    assert answer.status_code == 200
    assert '<option value="claude-sonnet-5">' in answer.text
    assert " data-draft" in answer.text
    assert policy(pair).roles == {}


async def test_each_role_says_where_its_work_would_go(page: Browser, pair: Path) -> None:
    Settings(pair).patch(
        PolicyPatch(roles={"reviewer": TargetPatch(adapter="beta", model="small")}),
        page.hub.project.catalog(),
    )
    form = (await text(page)).partition('id="f-role-reviewer"')[2].partition("</form>")[0]
    assert "beta · small" in form


@pytest.mark.parametrize("content", ["{", '{"model_routing": {"mode": "no-such"}}'])
async def test_settings_that_cannot_be_read_are_said_and_left_as_they_are(
    page: Browser, pair: Path, content: str
) -> None:
    form = form_of(await text(page), "limits")
    Settings(pair).path.write_text(content)
    answer = await page.get("/settings")
    assert "This cannot be shown" in answer.text
    assert "hub-settings.json" in answer.text
    refused = await page.post("/settings", {**form, "max_parallel": "5"})
    assert refused.status_code == 422
    assert refused.headers["hx-retarget"] == "#notice"
    assert Settings(pair).path.read_text() == content


async def test_cooldown_and_readiness_stand_above_the_settings(page: Browser, pair: Path) -> None:
    shown = (await text(page)).partition('id="ready"')[2].partition("</section>")[0]
    assert shown.count("ready") >= 2


async def test_a_database_that_cannot_be_read_hides_no_policy(page: Browser, pair: Path) -> None:
    (pair / DATABASE).write_bytes(b"this is no database" * 300)
    shown = await text(page)
    assert "This cannot be shown" in shown
    assert (await page.save("limits", max_parallel="2")).status_code == 200
    assert policy(pair).max_parallel == 2
    assert "This cannot be shown" in (await page.get("/runs")).text
