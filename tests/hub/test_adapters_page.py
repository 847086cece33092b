"""The adapters page: health with its countdown, an override that is audited, and what each can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from custodes import Supervision
from custodes.supervision.record.audit import LOG
from custodes.supervision.work import Work
from support import scripted
from support.hub import Browser

pytestmark = pytest.mark.anyio


async def limited(project: Path, seconds: int = 60) -> None:
    """Two pools of alpha meet a limit."""
    scripted.SCRIPTS[str(project)].acts.extend([scripted.limit(seconds), scripted.limit(seconds * 2)])
    async with Supervision(project) as supervision, supervision.conversation("c") as parent:
        for model in ("large", "small"):
            outcome = await parent.dispatch(Work(role="analyst", prompt="p", adapter="alpha", model=model))
            assert outcome.status == "failed"


async def test_a_pool_that_cools_down_is_shown_with_its_reason_count_and_seconds(
    page: Browser, pair: Path
) -> None:
    await limited(pair)
    shown = (await page.get("/adapters")).text
    row = shown.partition("<code>alpha:large</code>")[2].partition("</tr>")[0]
    assert "cooling down" in row
    assert "capacity" in row
    (seconds,) = [int(part.partition('"')[0]) for part in row.split('data-countdown="')[1:]]
    assert 50 <= seconds <= 60
    assert '<td class="number">1</td>' in row
    assert "beta" in shown


async def test_clearing_asks_first_and_is_audited(page: Browser, pair: Path) -> None:
    await limited(pair)
    shown = (await page.get("/adapters")).text
    assert "<details" in shown.partition("<code>alpha:large</code>")[2].partition("</tr>")[0]
    answer = await page.post("/adapters/clear", {"target": "alpha:large"}, script=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/adapters")
    entry = json.loads((pair / LOG).read_text().splitlines()[-1])
    assert (entry["by"], entry["action"], entry["target"]) == ("hub", "health.clear", "alpha:large")
    health = (await page.get("/api/health")).json()
    assert {each["pool"]: each["state"] for each in health["pools"]} == {
        "alpha:large": "healthy",
        "alpha:small": "cooling_down",
    }
    assert (await page.post("/adapters/clear", {"target": "alpha"})).status_code == 204
    health = (await page.get("/api/health")).json()
    assert {each["state"] for each in health["pools"]} == {"healthy"}


async def test_a_check_shows_version_and_what_must_be_mended(
    page: Browser, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 1.0.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    (pair / ".coding-os.yaml").write_text("agents: [claude]\n")
    assert (await page.post("/adapters/check", {"adapter": "claude"}, script=False)).status_code == 303
    shown = (await page.get("/adapters")).text
    assert "version 1.0.3" in shown
    assert "is too old" in shown


async def test_an_adapter_that_is_not_there_cannot_be_checked(page: Browser, pair: Path) -> None:
    answer = await page.post("/adapters/check", {"adapter": "claud"})
    assert answer.status_code == 404
    assert "claude" in answer.text


async def test_what_an_adapter_cannot_do_is_said_with_what_it_means(page: Browser, pair: Path) -> None:
    shown = (await page.get("/adapters")).text
    assert "What is missing" in shown
    assert "its tokens are not known" in shown


async def test_an_adapter_that_is_not_configured_is_told_from_one_that_is(page: Browser, pair: Path) -> None:
    adapters = {each["id"]: each for each in (await page.get("/api/config/adapters")).json()["adapters"]}
    assert adapters["alpha"]["agent"]
    assert adapters["alpha"]["ready"]
    assert not adapters["claude"]["agent"]
