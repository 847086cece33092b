"""The pages of what ran: hostile text, search, nesting, and where a native session goes on."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custodes.hub.picture import LANES, SLOTS, picture
from custodes.supervision.budgets.budget import Amount, Ledger
from custodes.supervision.budgets.fan_out_table import FanOutRow
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.run_view import RunView, attempts_seen, runs_of
from custodes.supervision.work import Budget
from support.hub import Browser, put_on_record

from .test_live import row

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&{{7*7}}"


def seen(*rows: AttemptRow) -> tuple[RunView, ...]:
    return runs_of(attempts_seen(rows, lambda owner: False))


@pytest.mark.anyio
async def test_a_childs_text_is_text_wherever_it_stands(page: Browser, project: Path) -> None:
    hostile = dict.fromkeys(("name", "model", "effort", "adapter", "reason", "native_thread_id"), HOSTILE)
    await put_on_record(project, [row("a", HOSTILE, status="failed", ended=2.0, **hostile)])
    for path in ("/runs", "/runs/a", "/conversations/" + HOSTILE.replace("/", "%2F").replace("?", "%3F")):
        text = (await page.get(path)).text
        assert "&lt;script&gt;alert(" in text, path
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "{{7*7}}" in text


@pytest.mark.anyio
async def test_a_search_finds_runs_by_any_words_of_their_record(page: Browser, project: Path) -> None:
    rows = [
        row("one", "first", adapter="claude", model="opus", status="done"),
        row("two", "second", adapter="codex", model="gpt", status="failed", native_thread_id="abc-123"),
    ]
    await put_on_record(project, rows)
    for words, found in {
        "claude": ["first"],
        "FAILED": ["second"],
        "codex gpt": ["second"],
        "codex opus": [],
        "abc-123": ["second"],
        "analyst": ["first", "second"],
        "%": [],
        "'; DROP TABLE attempts; --": [],
    }.items():
        text = (await page.client.get("/runs", params={"q": words})).text
        assert [name for name in ("first", "second") if f"/conversations/{name}" in text] == found, words


@pytest.mark.anyio
async def test_a_tree_shows_each_childs_adapter_model_and_why_it_fell_back(
    page: Browser, project: Path
) -> None:
    limited = row(
        "a",
        adapter="alpha",
        model="large",
        status="failed",
        ended=2.0,
        reason="capacity on alpha:large, 60 s stated",
    )
    covered = msgspec.structs.replace(
        limited,
        id="second",
        number=2,
        adapter="beta",
        status="done",
        reason="",
        started=2.0,
        ended=9.0,
        cost_usd=0.5,
        fallback_reason="capacity",
    )
    await put_on_record(project, [limited, covered])
    text = (await page.get("/conversations/c")).text
    tree = text.partition('class="row')[2]
    assert '<span class="chip adapter">beta</span><span class="chip model">large</span>' in tree
    assert "capacity on alpha:large, 60 s stated" in tree
    assert "$0.5000" in tree
    assert "fallback after capacity" in tree
    assert "for the first choice, after capacity" in (await page.get("/runs/a")).text


@pytest.mark.anyio
async def test_a_runs_page_gives_the_command_that_goes_on_with_its_native_session(
    page: Browser, project: Path
) -> None:
    session = "0192f1aa-1111-7abc-8def-0123456789ab"
    await put_on_record(
        project, [row("a", adapter="claude", model="m", status="done", ended=2.0, native_thread_id=session)]
    )
    text = (await page.get("/runs/a")).text
    assert f"claude --resume {session}" in text


@pytest.mark.anyio
async def test_what_is_not_on_record_is_said(page: Browser, project: Path) -> None:
    assert "Nothing ran here yet" in (await page.get("/runs")).text
    for path in ("/runs/none", "/conversations/none", "/runs?q=none"):
        assert "Nothing found" in (await page.get(path)).text


def test_the_picture_has_a_line_for_the_longest_children_and_counts_the_rest() -> None:
    rows = [
        row(f"r{n}", adapter="a", model="m", status="done", started=0.0, ended=float(n + 1))
        for n in range(LANES + 3)
    ]
    found = picture(seen(*rows), now=100.0)
    assert len(found.lanes) == LANES
    assert found.left_out == 3
    assert "r0" not in {lane.name for lane in found.lanes}
    assert found.span_s == LANES + 3
    assert all(bar.x >= 0 and bar.x + bar.width <= 1000.1 for lane in found.lanes for bar in lane.bars)


def test_a_child_that_took_most_of_the_money_in_no_time_has_its_line() -> None:
    rows = [
        row(f"r{n}", adapter="a", status="done", started=0.0, ended=10.0, cost_usd=0.01)
        for n in range(LANES + 3)
    ]
    rows.append(row("dear", adapter="a", status="done", started=0.0, ended=0.1, cost_usd=5.0))
    lanes = {lane.name: lane for lane in picture(seen(*rows), now=100.0).lanes}
    assert lanes["dear"].cost_usd == 5.0


def test_children_of_children_stand_below_their_parents_as_in_the_tree() -> None:
    rows = [
        row("a", adapter="x", status="done", started=0.0, ended=9.0),
        row("b", adapter="x", status="done", started=1.0, ended=2.0),
        row("a-1", adapter="x", status="done", started=3.0, ended=4.0, parent_run="a"),
        row("a-1-1", adapter="x", status="running", started=3.5, parent_run="a-1"),
    ]
    found = picture(seen(*rows), now=10.0)
    assert [(lane.name, lane.depth) for lane in found.lanes] == [("a", 0), ("a-1", 1), ("a-1-1", 2), ("b", 0)]
    assert found.load is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-5, 100)), min_size=LANES + 1, max_size=LANES + 9))
def test_the_load_adds_up_to_the_time_that_was_taken(times: list[tuple[float, float]]) -> None:
    rows = [
        row(f"r{n}", adapter="a", status="done", started=begun, ended=begun + took)
        for n, (begun, took) in enumerate(times)
    ]
    found = picture(seen(*rows), now=0.0)
    assert found.load is not None
    seconds = sum(each.height / 100 * found.load.most * found.span_s / SLOTS for each in found.load.columns)
    assert seconds == pytest.approx(sum(max(took, 0) for _, took in times), rel=0.01, abs=0.1 * found.span_s)
    assert max((each.height for each in found.load.columns), default=100) == 100


def test_the_picture_shares_time_and_money_by_model_and_an_unknown_cost_is_none() -> None:
    rows = [
        row(
            "a", adapter="x", model="m", status="done", started=0.0, ended=30.0, cost_usd=3.0, input_tokens=5
        ),
        row("b", adapter="y", model="n", status="done", started=0.0, ended=10.0),
        row("c", status="refused", started=0.0, ended=0.0),
    ]
    first, second = picture(seen(*rows), now=100.0).shares
    assert (first.name, first.time_part, first.cost_part, first.tokens) == ("x · m", 750.0, 1000.0, 5)
    assert (second.name, second.time_part, second.cost_part, second.tokens) == ("y · n", 250.0, None, None)


def test_a_picture_of_nothing_is_empty() -> None:
    assert picture((), now=1.0).lanes == ()


@pytest.mark.anyio
async def test_a_fan_outs_budget_is_shown_with_what_is_spent_reserved_and_over(
    page: Browser, pair: Path
) -> None:
    budget = Budget(children=4, tokens=100, usd=2.0, when_spent="stop")
    ledger = Ledger(
        budget=budget,
        opened_at=0,
        children=3,
        reserved=Amount(usd=500_000_000),
        spent=Amount(tokens=130, usd=250_000_000),
        estimated=Amount(tokens=30),
    )
    fan_out = FanOutRow(
        id="a", conversation="c", name="<shards>", ledger=ledger, started=1.0, changed=2.0, ended=2.0
    )
    await put_on_record(pair, [row("a", status="done", ended=2.0)], fan_outs=[fan_out])
    text = re.sub(r"<[^>]*>|\s+", " ", (await page.get("/conversations/c")).text)
    text = re.sub(r"\s+", " ", text)
    assert "Fan-out &lt;shards&gt; ended Children 3 of 4 Tokens 130 of 100" in text
    assert "130 of 100 · 30 of it estimated · 30 over Cost" in text
    assert "Cost $0.25 of $2 + $0.50 reserved Hard limit" in text
    assert "Seconds" not in text
    (told,) = (await page.get("/api/cognition/trace/c")).json()["fan_outs"]
    assert told["spent"]["tokens"]["overrun"] == 30
