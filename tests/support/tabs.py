"""A Hub in a real browser, as fixtures: its process, and pages of it that note what goes wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support import chromium

AXE = Path(__file__).parents[1] / "hub" / "vendor" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.chromium() as found:
        yield found


@pytest.fixture
def hub(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Starts the Hub of the project; one for a test."""
    monkeypatch.setenv("PATH", f"{project.parent / 'bin'}:/usr/bin:/bin")
    started = []

    def start() -> str:
        started.append(chromium.hub_process(project))
        return started[-1].__enter__()

    yield start
    for process in started:
        process.__exit__(None, None, None)


class Tab:
    """A page, and what went wrong in it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.troubles: list[str] = []
        self.hosts: set[str] = set()
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", lambda said: self.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def open(self, path: str) -> Page:
        self.page.goto(self.address.rstrip("/") + path)
        expect(self.page.locator("#link")).to_have_text("Live")
        return self.page

    def barriers(self) -> list[tuple[str, list[str]]]:
        """What keeps somebody out, by axe's rules: each with the first elements that do."""
        self.page.add_script_tag(path=AXE)
        found = self.page.evaluate("axe.run()")
        return [
            (each["id"], [node["html"] for node in each["nodes"]][:3])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def section(self, section: str) -> Locator:
        return self.page.locator(f"#s-{section}")


@pytest.fixture
def tab(browser: Browser, hub: Callable[..., str]) -> Iterator[Callable[..., Tab]]:
    address = ""
    tabs: list[Tab] = []

    def opened(**options: Any) -> Tab:
        nonlocal address
        address = address or hub()
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(20_000)
        tabs.append(Tab(page, address))
        return tabs[-1]

    expect.set_options(timeout=20_000)
    yield opened
    for each in tabs:
        each.page.context.close()
        assert not [trouble for trouble in each.troubles if "status of 4" not in trouble], each.troubles
        assert each.hosts <= {address.split("/")[2]}
