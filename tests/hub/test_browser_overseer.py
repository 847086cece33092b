"""The overseer's page in a real browser: what it shows, and a switch by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from support.cos import Cos
from support.health_provider import HealthProvider, health_provider
from support.overseer import kept_in_a_file
from support.tabs import Tab, browser, hub, tab

__all__ = ["browser", "hub", "tab"]
pytestmark = pytest.mark.full


@pytest.fixture
def provider() -> Iterator[HealthProvider]:
    """Where ``b`` is asked. Nobody is where ``a`` is."""
    with health_provider("two") as running:
        yield running


@pytest.fixture
def model(project: Path, provider: HealthProvider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the profile ``w`` is kept in."""
    home = project.parent / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    return kept_in_a_file(home, b=provider.url)


def profile(page: Page) -> Locator:
    return page.get_by_role("region", name="Profiles").get_by_role("row", name="w", exact=False).last


def opener(page: Page) -> Locator:
    return page.get_by_text("Switch w …")


def choose(page: Page, target: str) -> Locator:
    """Open the form of ``w`` and choose; the form."""
    form = page.locator("details", has=opener(page))
    if not form.get_by_role("button", name="Switch it").is_visible():
        opener(page).click()
    form.get_by_label("Switch w to").select_option(target)
    return form


def test_providers_profiles_and_incidents_appear_as_they_come_to_be(
    tab: Callable[..., Tab], model: Path, cos: Cos
) -> None:
    page = tab().open("/overseer")
    providers = page.locator("[aria-labelledby=providers]")
    expect(providers.get_by_role("row", name="a", exact=False).last).to_contain_text("unknown")
    expect(page.get_by_text("There were none.")).to_be_visible()
    for _ in range(3):
        assert cos("overseer", "tick").code == 0
    expect(providers).to_contain_text("dead")
    expect(providers).to_contain_text("well")
    expect(profile(page)).to_contain_text("b/two")
    incidents = page.locator("#incidents")
    expect(incidents).to_contain_text("switch to fallback a/one → b/two")
    expect(incidents).to_contain_text("active")


def test_a_switch_by_hand_asks_first_and_shows_what_came_of_it(
    tab: Callable[..., Tab], model: Path, cos: Cos
) -> None:
    page = tab().open("/overseer")
    expect(page.get_by_role("button", name="Switch it")).to_be_hidden()
    choose(page, "b/two").get_by_role("button", name="Switch it").click()
    expect(profile(page)).to_contain_text("by hand")
    expect(profile(page)).to_contain_text("a person holds it on b/two")
    expect(page.get_by_role("button", name="Switch it")).to_be_hidden()
    expect(opener(page)).to_be_focused()
    assert model.read_text() == "b/two"
    choose(page, "primary").get_by_role("button", name="Switch it").click()
    expect(profile(page)).not_to_contain_text("by hand")
    expect(page.locator("#incidents")).to_contain_text("by hand (hub)")
    assert model.read_text() == "a/one"


def test_what_is_chosen_stays_while_the_page_changes_and_an_old_view_switches_nothing(
    tab: Callable[..., Tab], model: Path, cos: Cos
) -> None:
    page = tab().open("/overseer")
    form = choose(page, "b/two")
    model.write_text("their/own")
    assert cos("overseer", "tick").code == 0
    expect(profile(page)).to_contain_text("their/own")
    expect(form.get_by_label("Switch w to")).to_have_value("b/two")
    form.get_by_role("button", name="Switch it").click()
    expect(page.locator("#notice")).to_contain_text("'w' is on their/own by now, and no longer on a/one")
    assert model.read_text() == "their/own"


def test_a_target_that_is_not_well_is_refused_and_taken_when_that_is_said(
    tab: Callable[..., Tab], model: Path, provider: HealthProvider, cos: Cos
) -> None:
    provider.status = 402
    assert cos("overseer", "tick").code == 0
    page = tab().open("/overseer")
    form = choose(page, "b/two")
    form.get_by_role("button", name="Switch it").click()
    expect(page.locator("#notice")).to_contain_text("b/two is refused until a person acts")
    expect(form.get_by_label("Switch w to")).to_have_value("b/two")
    form.get_by_label("Also if that is not well").check()
    form.get_by_role("button", name="Switch it").click()
    expect(profile(page)).to_contain_text("a person holds it on b/two")
    assert model.read_text() == "b/two"


def test_it_is_done_with_the_keyboard_alone(tab: Callable[..., Tab], model: Path) -> None:
    page = tab().open("/overseer")
    opener(page).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Switch w to")).to_be_focused()
    page.keyboard.type("b/two")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(profile(page)).to_contain_text("a person holds it on b/two")


def test_without_a_script_it_still_works(tab: Callable[..., Tab], model: Path) -> None:
    plain = tab(java_script_enabled=False)
    plain.page.goto(f"{plain.address}overseer")
    choose(plain.page, "b/two").get_by_role("button", name="Switch it").click()
    expect(profile(plain.page)).to_contain_text("a person holds it on b/two")
    assert plain.page.url.endswith("/overseer")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_and_is_accessible_with_all_that_it_can_show(
    tab: Callable[..., Tab], model: Path, cos: Cos, scheme: str, width: int
) -> None:
    for _ in range(3):
        assert cos("overseer", "tick").code == 0
    assert cos("overseer", "switch", "w", "b/two").code == 0
    shown = tab(color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    page = shown.open("/overseer")
    choose(page, "auto")
    expect(page.get_by_role("button", name="Switch it")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.barriers() == []
