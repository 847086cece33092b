"""What a page asks of whoever owns a run: to end it, and to take an answer."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from custodes import Supervision
from custodes.adapters.port import (
    DispatchRequest,
    DispatchResult,
    PermissionAnswer,
    PermissionAsk,
    ProgressSink,
)
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_run import run_plan
from custodes.supervision.work import Budget, Work
from support import scripted
from support.hub import Browser
from support.works import fanning_out

pytestmark = pytest.mark.anyio

REVIEW = Work(role="reviewer", prompt="look")


class Asker:
    """An act that asks for leave, and notes the answer."""

    def __init__(self, detail: str = "rm -rf build") -> None:
        self.asked = anyio.Event()
        self.detail = detail
        self.answer: PermissionAnswer | None = None

    async def __call__(self, request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        assert request.permit is not None
        self.asked.set()
        self.answer = await request.permit(PermissionAsk(tool="shell", detail=self.detail))
        return await scripted.answer(request, progress)


@pytest.mark.parametrize("by_api", [True, False])
async def test_a_child_is_cancelled_from_a_page_and_its_sibling_goes_on(
    page: Browser, pair: Path, by_api: bool
) -> None:
    hang = scripted.Hang()
    scripted.SCRIPTS[str(pair)].acts.append(hang)
    async with fanning_out(pair) as fan:
        child = fan.start(REVIEW)
        await hang.begun.wait()
        fan.start(REVIEW)
        assert f'value="{child.run_id}"' in (await page.get("/conversations/c")).text
        if by_api:
            answer = await page.call("POST", f"/api/runs/{child.run_id}/cancel")
            assert [run["status"] for run in answer.json()["runs"]] == ["cancelled"]
        else:
            fields = {"target": child.run_id, "back": "/conversations/c"}
            answer = await page.post("/runs/cancel", fields, script=False)
            assert (answer.status_code, answer.headers["location"]) == (303, "/conversations/c")
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled", "done"]


async def test_a_conversation_is_cancelled_by_its_id_whatever_that_holds(page: Browser, pair: Path) -> None:
    hang = scripted.Hang()
    scripted.SCRIPTS[str(pair)].acts.append(hang)
    async with fanning_out(pair, "team/7") as fan:
        fan.start(REVIEW)
        await hang.begun.wait()
        answer = await page.call("POST", "/api/runs/team%2F7/cancel")
    assert [run["status"] for run in answer.json()["runs"]] == ["cancelled"]


async def test_what_is_not_on_record_cannot_be_cancelled(page: Browser, pair: Path) -> None:
    assert (await page.call("POST", "/api/runs/none/cancel")).status_code == 404
    assert (await page.post("/runs/cancel", {"target": "none"})).status_code == 404


@pytest.mark.parametrize("back", ["//evil.example", "http://evil.example", "/\\evil.example", ""])
async def test_a_form_leads_back_to_a_page_of_the_hub_alone(page: Browser, pair: Path, back: str) -> None:
    hang = scripted.Hang()
    scripted.SCRIPTS[str(pair)].acts.append(hang)
    async with fanning_out(pair) as fan:
        fan.start(REVIEW)
        await hang.begun.wait()
        answer = await page.post("/runs/cancel", {"target": "c", "back": back}, script=False)
    assert answer.headers["location"] == "/runs"


@pytest.mark.parametrize("given", ["allow", "deny"])
async def test_an_ask_for_leave_is_shown_with_what_it_is_for_and_answered(
    page: Browser, pair: Path, given: PermissionAnswer
) -> None:
    asker = Asker("rm -rf <b>build</b>")
    scripted.SCRIPTS[str(pair)].acts.append(asker)
    async with fanning_out(pair) as fan:
        fan.start(REVIEW)
        await asker.asked.wait()
        asks: list[dict[str, str]] = []
        while not asks:  # the row is written a moment after the ask
            asks = (await page.get("/api/asks")).json()["asks"]
        for path in ("/runs", "/conversations/c"):
            shown = (await page.get(path)).text
            assert "Waiting for you" in shown
            assert "rm -rf &lt;b&gt;build&lt;/b&gt;" in shown
        answer = await page.post("/runs/answer", {"ask": asks[0]["id"], "answer": given})
        assert answer.status_code == 204
        other = "deny" if given == "allow" else "allow"
        late = await page.post("/runs/answer", {"ask": asks[0]["id"], "answer": other})
        assert late.status_code == 409
        assert f"answered before: {given}, by hub" in late.text
    assert asker.answer == given
    assert "Waiting for you" not in (await page.get("/runs")).text


async def test_an_answer_by_the_api_is_checked(page: Browser, pair: Path) -> None:
    assert (await page.call("POST", "/api/asks/none", {"answer": "maybe"})).status_code == 400
    missing = await page.call("POST", "/api/asks/none", {"answer": "allow"})
    assert (missing.status_code, missing.json()["error"]["kind"]) == (409, "operator")


async def test_a_plan_shows_its_steps_and_how_much_of_its_budget_is_spent(page: Browser, pair: Path) -> None:
    plan = Plan(
        name="weekly",
        steps=(
            Step(id="look", role="reviewer", prompt="look"),
            Step(id="judge", role="analyst", prompt="judge"),
        ),
        budget=Budget(tokens=1_000_000, children=8),
    )
    async with Supervision(pair) as supervision, supervision.conversation("c") as parent:
        await run_plan(parent, plan)
    shown = (await page.get("/conversations/c")).text
    assert "Plan weekly" in shown
    assert ">look</a>" in shown
    assert "of 1,000,000" in shown
    told = (await page.get("/api/plans/c")).json()["plans"][0]
    assert told["spent"]["children"] == {**told["spent"]["children"], "limit": 8, "spent": 2}
