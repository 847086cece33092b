"""The Hub in a real browser: what a person sees and does, as the specification lists it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from custodes.policy.patch import PolicyPatch
from custodes.policy.policy import Policy, Target
from custodes.policy.settings import Settings
from support import chromium
from support.beside import beside, both, elsewhere, models, policy, typed, work
from support.cos import Tiered
from support.tabs import Tab, browser, hub, tab

__all__ = ["both", "browser", "hub", "models", "tab"]

pytestmark = pytest.mark.full

# -- Settings


def test_off_it_hides_the_routing_and_the_switch_brings_it(tab: Callable[..., Tab], tiered: Tiered) -> None:
    page = tab().open("/settings")
    expect(page.get_by_role("heading", name="Supervision is off")).to_be_visible()
    expect(page.locator("select")).to_have_count(0)
    page.get_by_role("button", name="Turn on").click()
    expect(page.get_by_role("heading", name="Supervision is on")).to_be_visible()
    expect(page.get_by_role("heading", name="By role")).to_be_visible()
    assert policy(tiered.project).enabled
    page.get_by_role("button", name="Turn off").click()
    expect(page.locator("select")).to_have_count(0)


def test_on_it_shows_mode_gate_targets_fallback_concurrency_and_cooldown(
    tab: Callable[..., Tab], both: Path
) -> None:
    page = tab().open("/settings")
    for label in ("Mode", "Complexity gate", "Where the target cannot run", "Attempts at once", "First wait"):
        expect(page.get_by_label(label, exact=True)).to_be_visible()
    for role in ("orchestrator", "role-reviewer", "role-security_auditor"):
        for label in ("Adapter", "Model", "Effort"):
            expect(page.locator(f"#s-{role}").get_by_label(label, exact=True)).to_be_visible()


def test_an_adapter_that_is_not_installed_is_seen_disabled_with_its_reason(
    tab: Callable[..., Tab], both: Path
) -> None:
    choice = tab().open("/settings").locator("#s-role-reviewer").get_by_label("Adapter")
    gone = choice.locator("option[value=hermes]")
    expect(gone).to_be_disabled()
    expect(gone).to_contain_text("was not found")
    expect(choice.locator("option[value=opencode]")).to_have_count(0)


def test_one_adapter_offers_no_choice_of_it(tab: Callable[..., Tab], models: Path) -> None:
    page = tab().open("/settings")
    expect(page.locator("#s-role-reviewer").get_by_label("Adapter")).to_have_count(0)
    expect(page.locator("#s-role-reviewer").get_by_label("Model")).to_be_visible()
    expect(page.locator("#s-role-reviewer").get_by_label("Effort")).to_be_visible()


def test_choosing_an_adapter_offers_its_models_and_saving_keeps_the_page(
    tab: Callable[..., Tab], both: Path
) -> None:
    first = tab()
    page = first.open("/settings")
    row = first.section("role-reviewer")
    row.get_by_label("Adapter").select_option("codex")
    expect(row.get_by_label("Model").locator("option[value='gpt-6.2-sol']")).to_have_count(1)
    row.get_by_label("Model").select_option("gpt-6.2-sol")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("Saved")).to_be_visible()
    expect(row.locator(".route")).to_contain_text("codex · gpt-6.2-sol")
    assert policy(both).roles == {"reviewer": Target(adapter="codex", model="gpt-6.2-sol")}
    row.get_by_role("button", name="Inherit all").click()
    expect(row.get_by_label("Adapter")).to_have_value("")
    assert policy(both).roles == {}
    assert page.url.endswith("/settings")


def test_a_stale_value_is_shown_and_labelled(tab: Callable[..., Tab], both: Path) -> None:
    path = Settings(both).path
    path.write_text('{"model_routing": {"enabled": true, "roles": {"reviewer": {"adapter": "gone"}}}}')
    row = tab().open("/settings").locator("#s-role-reviewer")
    expect(row.get_by_label("Adapter")).to_have_value("gone")
    expect(row).to_contain_text("Unavailable")


def test_a_refused_value_stays_with_the_reason_beside_it(tab: Callable[..., Tab], both: Path) -> None:
    first = tab()
    first.open("/settings")
    row = first.section("limits")
    row.get_by_label("Attempts at once").fill("99")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("a whole number from 1 to 16 would work")).to_be_visible()
    expect(row.get_by_label("Attempts at once")).to_have_value("99")
    expect(row.get_by_label("Attempts at once")).to_have_attribute("aria-invalid", "true")
    row.get_by_label("Attempts at once").fill("9")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("Saved")).to_be_visible()
    assert policy(both).max_parallel == 9


def test_two_browsers_and_the_command_line_edit_at_once_and_nobody_writes_over_anybody(
    tab: Callable[..., Tab], both: Path
) -> None:
    first, second = tab(), tab()
    first.open("/settings")
    second.open("/settings")
    mine, theirs = first.section("limits"), second.section("limits")
    mine.get_by_label("Attempts at once").fill("5")

    theirs.get_by_label("Attempts at once").fill("7")
    theirs.get_by_role("button", name="Save").click()
    expect(theirs.get_by_text("Saved")).to_be_visible()

    expect(mine.get_by_text("Changed elsewhere meanwhile")).to_be_visible()
    expect(mine.get_by_label("Attempts at once")).to_have_value("5")
    mine.get_by_role("button", name="Save").click()
    expect(mine.get_by_text("Saved now")).to_be_visible()
    expect(mine.locator(".both dd")).to_have_text(["7", "5"])
    assert policy(both).max_parallel == 7

    typed(both, "supervision", "set", "--max-parallel", "8")
    mine.get_by_role("button", name="Save mine over it").click()
    expect(mine.locator(".both dd")).to_have_text(["8", "5"])
    mine.get_by_role("button", name="Save mine over it").click()
    expect(mine.get_by_text("Saved", exact=True)).to_be_visible()
    assert policy(both).max_parallel == 5
    expect(theirs.get_by_label("Attempts at once")).to_have_value("5")

    typed(both, "supervision", "set", "--mode", "suggest", "--role", "analyst", "--role-effort", "low")
    for each in (first, second):
        expect(each.page.get_by_label("Mode", exact=True)).to_have_value("suggest")
        expect(each.section("role-analyst").get_by_label("Effort")).to_have_value("low")


def test_what_two_browsers_and_three_terminals_save_in_the_same_moment_is_all_there(
    tab: Callable[..., Tab], both: Path
) -> None:
    first, second = tab(), tab()
    for each in (first, second):
        each.open("/settings")
    first.section("limits").get_by_label("Attempts at once").fill("5")
    second.section("cooldown").get_by_label("First wait").fill("17")
    terminals = [
        beside(both, "supervision", "set", *words)
        for words in (
            ("--max-live", "33"),
            ("--mode", "adaptive"),
            ("--role", "analyst", "--role-effort", "low"),
        )
    ]
    first.section("limits").get_by_role("button", name="Save").click()
    second.section("cooldown").get_by_role("button", name="Save").click()
    for each, section in ((first, "limits"), (second, "cooldown")):
        expect(each.section(section).get_by_text("Saved", exact=True)).to_be_visible()
    assert [terminal.wait(60) for terminal in terminals] == [0, 0, 0]
    now = policy(both)
    assert (now.max_parallel, now.cooldown.default_seconds, now.max_live) == (5, 17, 33)
    assert (now.mode, now.roles) == ("adaptive", {"analyst": Target(effort="low")})
    for each in (first, second):
        expect(each.section("limits").get_by_label("Attempts at once")).to_have_value("5")
        expect(each.section("limits").get_by_label("Begun and not ended")).to_have_value("33")
        expect(each.section("cooldown").get_by_label("First wait")).to_have_value("17")


# -- For everybody


def test_everything_is_done_with_the_keyboard_alone(tab: Callable[..., Tab], both: Path) -> None:
    page = tab().open("/settings")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the page")
    page.keyboard.press("Enter")
    seen = []
    for _ in range(80):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.name || ''"))
        if seen[-1] == "max_parallel":
            break
    assert "mode" in seen
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    expect(page.locator("#s-limits").get_by_text("Saved")).to_be_visible()
    assert policy(both).max_parallel == 4
    assert page.evaluate("document.activeElement.name") == "max_parallel"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_page_fits_and_is_accessible(
    tab: Callable[..., Tab], models: Path, scheme: str, width: int, browser: Browser
) -> None:
    (models / "sick").touch()
    with work(models, "--model", "sick", "look") as host:
        host.wait(60)
    first = tab(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = first.open("/runs")
    conversation = page.locator(".conversation h2 a").get_attribute("href")
    run = page.locator(".runs-of a").first.get_attribute("href")
    assert conversation
    assert run
    for path in ("/settings", "/adapters", "/runs", conversation, run, "/overseer"):
        first.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert first.barriers() == [], path


def test_without_a_script_everything_still_works(tab: Callable[..., Tab], both: Path) -> None:
    first = tab(java_script_enabled=False)
    page = first.page
    page.goto(f"{first.address}settings")
    row = first.section("limits")
    row.get_by_label("Attempts at once").fill("99")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_text("a whole number from 1 to 16 would work")).to_be_visible()
    row.get_by_label("Attempts at once").fill("2")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_label("Attempts at once")).to_have_value("2")
    assert policy(both).max_parallel == 2


def test_a_hub_that_is_started_anew_is_found_again_and_takes_what_was_typed_meanwhile(
    browser: Browser, both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chromium.hub_process(both) as address:
        page = browser.new_context().new_page()
        page.goto(f"{address}settings")
        expect(page.locator("#link")).to_have_text("Live")
        port = address.rsplit(":", 1)[1].strip("/")
    limits = page.locator("#s-limits")
    limits.get_by_label("Attempts at once").fill("5")
    expect(page.locator("#link")).to_have_text("Reconnecting …")
    elsewhere(both, PolicyPatch(mode="suggest"))
    with chromium.hub_process(both, port):
        expect(page.get_by_label("Mode", exact=True)).to_have_value("suggest", timeout=60_000)
        expect(limits.get_by_label("Attempts at once")).to_have_value("5")
        limits.get_by_role("button", name="Save").click()
        expect(limits.get_by_text("Saved", exact=True)).to_be_visible()
        assert policy(both) == Policy(enabled=True, mode="suggest", max_parallel=5)
    page.context.close()


def test_a_page_of_another_site_can_neither_read_nor_change(tab: Callable[..., Tab], both: Path) -> None:
    first = tab()
    page = first.page
    first.hosts = set()
    page.goto("data:text/html,<title>evil</title>")
    before = Settings(both).path.read_bytes()
    outcomes = page.evaluate(
        """async (address) => {
          const tried = [];
          const asks = [
            ["api/settings", {}],
            ["api/settings", {method: "PATCH", body: "{}"}],
            ["settings", {method: "POST", mode: "no-cors", body: new URLSearchParams({"max_parallel": "1"})}],
          ];
          for (const [path, options] of asks) {
            try { const got = await fetch(address + path, options); tried.push(got.type + got.status); }
            catch { tried.push("blocked"); }
          }
          return tried;
        }""",
        first.address,
    )
    assert outcomes[:2] == ["blocked", "blocked"]
    assert outcomes[2] in ("blocked", "opaque0")  # some browsers send it; nobody reads its answer
    assert Settings(both).path.read_bytes() == before
    first.troubles.clear()
    first.hosts = set()
