"""Where a trace is looked at: the address, and the link on a run's page."""

from __future__ import annotations

from pathlib import Path

import pytest

from custodes.hub.trace_link import TraceLinkError, check, link
from custodes.telemetry import Lineage
from support.cos import Cos
from support.hub import browser, put_on_record

from .test_live import row

VIEWER = "https://traces.example:8443/t/{trace}?tab=tree"
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    "template",
    [
        "",
        "{trace}",
        "http://localhost:16686/trace/",
        "javascript:alert('{trace}')",
        "http:///{trace}",
        "http://[",
    ],
)
def test_what_no_browser_opens_or_has_no_place_for_the_id_is_refused(template: str) -> None:
    with pytest.raises(TraceLinkError, match=r"http://localhost:16686/trace/\{trace\} would work"):
        check(template)


def test_an_id_goes_into_its_place_and_is_no_more_than_an_id() -> None:
    assert link(check(VIEWER), TRACE) == f"https://traces.example:8443/t/{TRACE}?tab=tree"
    assert link("http://t/{trace}", "../x?y#z") == "http://t/..%2Fx%3Fy%23z"


@pytest.mark.anyio
async def test_a_runs_page_links_its_trace_and_gives_the_command_that_shows_it(project: Path) -> None:
    traced = row("a", "-c d", adapter="p", status="done", ended=2.0, trace=Lineage(trace=TRACE))
    await put_on_record(project, [traced])
    async with browser(project, trace_url=VIEWER) as page:
        text = (await page.get("/runs/a")).text
        assert f'href="https://traces.example:8443/t/{TRACE}?tab=tree"' in text
        assert "cos cognition trace -- &#39;-c d&#39;" in text
    async with browser(project) as page:
        text = (await page.get("/runs/a")).text
        assert f'<code class="select">{TRACE}</code>' in text
        assert "traces.example" not in text


def test_an_address_that_is_none_is_said_before_anything_is_served(cos: Cos) -> None:
    answer = cos("hub", "--port", "0", "--trace-url", "localhost:6006/{trace}")
    assert answer.code == 2
    assert "--trace-url 'localhost:6006/{trace}' is no address" in answer.err
    assert answer.out == ""
