"""The Hub in a real browser: what a person sees and does, as the specification lists it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from playwright.sync_api import Browser, expect

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.patch import PolicyPatch, TargetPatch
from custodes.policy.policy import Policy, Target
from custodes.policy.settings import Settings
from support import chromium
from support.cos import Cos, Tiered
from support.hub import put_on_record
from support.tabs import Tab, browser, hub, tab

from .test_live import row

__all__ = ["browser", "hub", "tab"]
pytestmark = pytest.mark.full

PROGRAM = """\
import json, os, sys, time
from pathlib import Path

what = sys.argv[1]
sys.stdin.read()
if what == "sick" and Path("sick").exists():
    print("rate limit reached, retry after 4 seconds", file=sys.stderr)
    sys.exit(1)
while what == "slow" and not Path("go").exists():
    time.sleep(0.05)
print(json.dumps({"summary": "<script>document.title='owned'</script>"}))
"""


@pytest.fixture
def models(project: Path, cos: Cos) -> Path:
    """One adapter whose models are small programs, each in a pool of its own; supervision is on."""
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    lines = "".join(
        f"  - {{id: {name}, bucket: {name}, argv: [{sys.executable}, {folder / 'program.py'}, {name}]"
        f"{', default: true' if name == 'well' else ''}}}\n"
        for name in ("well", "sick", "slow")
    )
    (folder / "adapter.yaml").write_text(f"models:\n{lines}")
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    assert cos("adapters", "trust", "command").code == 0
    assert cos("supervision", "enable").code == 0
    return project


@pytest.fixture
def both(project: Path, cos: Cos) -> Path:
    """Three configured adapters, of which one is not installed."""
    binaries = project.parent / "bin"
    binaries.mkdir()
    for name in ("claude", "codex"):
        (binaries / name).write_text("#!/bin/sh\necho 99.0.0\n")
        (binaries / name).chmod(0o755)
    (project / ".coding-os.yaml").write_text("agents: [claude, codex, hermes]\n")
    assert cos("supervision", "enable").code == 0
    return project


def policy(project: Path) -> Policy:
    return Settings(project).read().policy


def work(project: Path, *words: str) -> subprocess.Popen[bytes]:
    """`cos dispatch` in a process of its own, as a host beside the Hub."""
    cos = [sys.executable, "-m", "custodes.cli"]
    command = [*cos, "dispatch", "-d", str(project), "--role", "analyst", *words]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=dict(os.environ)
    )


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
    tab: Callable[..., Tab], both: Path, cos: Cos
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

    elsewhere(both, PolicyPatch(max_parallel=8))
    mine.get_by_role("button", name="Save mine over it").click()
    expect(mine.locator(".both dd")).to_have_text(["8", "5"])
    mine.get_by_role("button", name="Save mine over it").click()
    expect(mine.get_by_text("Saved", exact=True)).to_be_visible()
    assert policy(both).max_parallel == 5
    expect(theirs.get_by_label("Attempts at once")).to_have_value("5")

    elsewhere(both, PolicyPatch(mode="suggest", roles={"analyst": TargetPatch(effort="low")}))
    for each in (first, second):
        expect(each.page.get_by_label("Mode", exact=True)).to_have_value("suggest")
        expect(each.section("role-analyst").get_by_label("Effort")).to_have_value("low")


def elsewhere(project: Path, change: PolicyPatch) -> None:
    """A change by another program."""
    Settings(project).patch(change, Catalog.of(Registry.discover(project), readiness=False))


# -- Adapters and runs


def test_a_limit_counts_down_the_fallback_is_seen_and_the_probe_heals(
    tab: Callable[..., Tab], models: Path
) -> None:
    elsewhere(models, PolicyPatch(fallback_policy="same_adapter_default"))
    (models / "sick").touch()
    first, second = tab(), tab()
    pools = first.open("/adapters")
    runs = second.open("/runs")
    expect(runs.get_by_text("Nothing ran here yet")).to_be_visible()
    with work(models, "--model", "sick", "look") as host:
        pool = pools.get_by_role("row", name=re.compile("command:sick"))
        expect(pool).to_contain_text("cooling down")
        expect(pool.locator(".countdown")).to_have_text(re.compile(r"^[1-4] s$"))
        host.wait(60)
    expect(pool).to_contain_text("the next to ask is its probe")

    runs.locator(".conversation h2 a").click()
    tree = runs.locator(".row")
    expect(tree).to_contain_text("capacity")
    expect(tree.locator(".chip.model")).to_have_text("well")
    expect(tree).to_contain_text("done")

    (models / "sick").unlink()
    with work(models, "--model", "sick", "look") as host:
        host.wait(60)
    expect(pool).to_contain_text("healthy")


def test_clearing_a_pool_asks_first(tab: Callable[..., Tab], models: Path) -> None:
    (models / "sick").touch()
    with work(models, "--model", "sick", "look") as host:
        host.wait(60)
    page = tab().open("/adapters")
    row = page.get_by_role("row", name=re.compile("command:sick"))
    expect(row.get_by_role("button", name="Clear it")).to_be_hidden()
    row.get_by_label("Clear command:sick").click()
    row.get_by_role("button", name="Clear it").click()
    expect(row).to_contain_text("healthy")
    assert '"hub"' in (models / ".coding-os" / "extensions-audit.log").read_text()


def test_a_child_appears_by_itself_is_cancelled_from_the_page_and_its_text_is_text(
    tab: Callable[..., Tab], models: Path
) -> None:
    page = tab().open("/runs")
    with work(models, "--model", "slow", "look") as host:
        expect(page.locator(".conversation")).to_contain_text("running")
        page.locator(".conversation h2 a").click()
        row = page.locator(".row")
        expect(row.locator("[data-elapsed]")).to_have_text(re.compile(r"^\d+ s$"))
        row.get_by_text("Cancel …").click()
        row.get_by_role("button", name="Cancel it").click()
        expect(row.locator(".badge").first).to_have_text("cancelled")
        host.wait(60)


def test_what_a_child_is_called_is_text_also_where_it_comes_live(
    tab: Callable[..., Tab], models: Path
) -> None:
    with work(models, "look") as host:
        host.wait(60)
    page = tab().open("/conversations/c")
    hostile = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    hostile_row = row("a", name=hostile, adapter=hostile, model=hostile, reason=hostile)
    with ThreadPoolExecutor(1) as other:  # in this thread runs the browser's loop
        other.submit(lambda: anyio.run(put_on_record, models, [hostile_row])).result()
    expect(page.locator(".row .name")).to_have_text(hostile)
    page.locator(".row .name").click()
    expect(page.get_by_role("heading", name="Attempt 1")).to_be_visible()
    assert "owned" not in page.title()


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
