"""What runs, and the adapters it runs on, in a real browser: live, limited, covered, cancelled, asked for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest
from playwright.sync_api import expect

from custodes.hub.picture import LANES
from custodes.policy.patch import PolicyPatch
from support.beside import Host, beside, elsewhere, models, work
from support.hub import put_on_record
from support.tabs import Tab, browser, hub, tab

from .test_live import row

__all__ = ["browser", "hub", "models", "tab"]

pytestmark = pytest.mark.full

FAN_OUT = """\
import sys
from pathlib import Path

import anyio

from custodes import Budget, Supervision, Work


async def main() -> None:
    async with Supervision(Path(sys.argv[1])) as supervision, supervision.conversation("shards") as parent:
        async with parent.fan_out(name="shards", budget=Budget(children=4, tokens=90_000)) as fan:
            for model in ("slow", "well"):
                fan.start(Work(role="analyst", prompt="x", model=model, name=model, estimate_tokens=30_000))


anyio.run(main)
"""
PLAN = """\
name: release
steps:
  - {id: look, role: analyst, prompt: Look., model: slow}
  - {id: tell, role: documenter, prompt: Tell., model: well, needs: [look]}
budget: {children: 4, tokens: 500000, when_spent: stop}
"""


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


def test_the_budget_of_a_fan_out_fills_while_it_runs(tab: Callable[..., Tab], models: Path) -> None:
    page = tab().open("/conversations/shards")
    with Host("-c", FAN_OUT, str(models)) as host:
        account = page.locator(".plan", has_text="Fan-out shards")
        expect(account).to_contain_text("running")
        expect(account).to_contain_text("2 of 4")
        expect(account).to_contain_text("30,000 of 90,000 + 30,000 reserved")
        spent, reserved = (
            account.locator(f".budget:nth-of-type(2) .{kind}") for kind in ("time", "reserved")
        )
        assert [float(bar.get_attribute("width") or 0) for bar in (spent, reserved)] == [333.3, 333.3]
        (models / "go").touch()
        expect(account).to_contain_text("60,000 of 90,000 · 60,000 of it estimated")
        expect(account).to_contain_text("ended")
        assert host.wait(60) == 0
    expect(page.locator(".lane-name").first).to_have_text("slow")


def test_the_steps_and_the_budget_of_a_plan_are_seen_as_they_go(
    tab: Callable[..., Tab], models: Path
) -> None:
    (models / "plan.yaml").write_text(PLAN)
    page = tab().open("/runs")
    with beside(models, "run", str(models / "plan.yaml")) as host:
        page.locator(".conversation h2 a").click()
        plan = page.locator(".plan", has_text="Plan release")
        expect(plan).to_contain_text("running")
        expect(plan.locator(".chip", has_text="look").locator(".dot")).to_have_class("dot running")
        expect(plan).to_contain_text("Hard limit")
        (models / "go").touch()
        expect(plan).to_contain_text("2 of 4")
        expect(plan.locator(".dot.done")).to_have_count(2)
        assert host.wait(60) == 0


@pytest.mark.parametrize("answer", ["Allow", "Deny"])
def test_what_a_child_asks_leave_for_is_listed_and_answered(
    tab: Callable[..., Tab], project: Path, answer: str
) -> None:
    page = tab().open("/runs")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = ("-m", "support.asking_host", str(project))
    with Host(*command, stdout=subprocess.PIPE, env=environment) as host:
        ask = page.get_by_role("region", name="Asked for leave").get_by_role("listitem")
        expect(ask).to_contain_text("asker reviewer asks leave for shell; denied in")
        expect(ask.locator("pre")).to_have_text("rm -r build")
        ask.get_by_role("button", name=f"{answer} shell for asker").click()
        expect(page.get_by_role("region", name="Asked for leave")).to_have_count(0)
        said, _ = host.communicate(timeout=60)
    assert said.strip() == answer.lower()


def test_a_database_that_is_deleted_and_made_anew_is_followed(tab: Callable[..., Tab], models: Path) -> None:
    with work(models, "look") as host:
        host.wait(60)
    page = tab().open("/runs")
    expect(page.locator(".conversation")).to_have_count(1)
    for name in ("custodes.db", "custodes.db-wal", "custodes.db-shm"):
        (models / ".coding-os" / name).unlink(missing_ok=True)
    expect(page.get_by_text("Nothing ran here yet")).to_be_visible()
    with work(models, "look") as host:
        host.wait(60)
    expect(page.locator(".conversation")).to_contain_text("1 done")
    expect(page.locator("#link")).to_have_text("Live")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_picture_of_a_thousand_children_fits_and_can_be_read(
    tab: Callable[..., Tab], project: Path, width: int
) -> None:
    rows = [
        row(
            f"r{n:04}",
            name=f"shard {n}",
            adapter="p",
            model="m",
            status="done",
            started=float(n),
            ended=n + 20.0 + n % 9,
            cost_usd=0.01,
            parent_run=f"r{n - 1:04}" if n % 3 == 2 else None,
        )
        for n in range(1_000)
    ]
    with ThreadPoolExecutor(1) as other:  # in this thread runs the browser's loop
        other.submit(lambda: anyio.run(put_on_record, project, rows)).result()
    page = tab(viewport={"width": width, "height": 800}).open("/conversations/c")
    picture = page.locator("#picture")
    expect(picture.locator(".lane-name").first).to_have_text(re.compile(r"^at once, at most 2\d"))
    expect(picture.locator(".lane")).to_have_count(LANES + 2)
    expect(picture).to_contain_text(f"and {1_000 - LANES} smaller ones")
    expect(page.locator(".row")).to_have_count(1_000)
    boxes = [lane.bounding_box() for lane in picture.locator(".lane svg").all()]
    assert all(box and box["width"] > width / 3 and box["x"] + box["width"] <= width for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
