"""A run, or a whole conversation, is cancelled through its owner: with proof, once, and from any process."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import custodes
from custodes.overseer.by_hand import SwitchOrder
from custodes.store import Database
from custodes.supervision.asks.operator_ask import OperatorError, cancel_in_file
from custodes.supervision.asks.posted import posted
from custodes.supervision.nesting.nested_work import RUN
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_run import PlanEnd, run_plan
from custodes.supervision.record.owner_identity import this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from support import scripted
from support.nesting import nesting
from support.works import fanning_out, review

pytestmark = pytest.mark.anyio


async def test_one_run_is_cancelled_and_its_sibling_goes_on(tmp_path: Path, script: scripted.Script) -> None:
    hang = scripted.Hang()
    script.acts.append(hang)
    async with fanning_out(tmp_path) as fan:
        child = fan.start(review())
        await hang.begun.wait()
        fan.start(review())
        report = await cancel_in_file(tmp_path, child.run_id, "cli", {})
        again = await cancel_in_file(tmp_path, child.run_id, "cli", {})
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled", "done"]
    assert report is not None
    assert [(run.run_id, run.status) for run in report.runs] == [(child.run_id, "cancelled")]
    assert report.unanswered == ()
    assert again == report


async def test_a_conversation_is_cancelled_whole_those_that_wait_included(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    hang = scripted.Hang()
    script.acts.append(hang)
    async with fanning_out(tmp_path) as fan:
        for _ in range(3):
            fan.start(review())
        await hang.begun.wait()
        report = await cancel_in_file(tmp_path, "c", "cli", {})
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled"] * 3
    assert len(script.requests) == 1
    assert report is not None
    assert [run.status for run in report.runs] == ["cancelled"]


async def test_the_run_of_a_plan_stands_for_all_of_it(tmp_path: Path, script: scripted.Script) -> None:
    hang = scripted.Hang()
    script.acts.append(hang)
    steps = (
        Step(id="a", role="reviewer", prompt="look"),
        Step(id="b", role="reviewer", prompt="look", needs=("a",)),
    )
    ends: list[PlanEnd] = []
    plan_runs: list[str] = []
    with anyio.fail_after(30):
        async with (
            custodes.Supervision(tmp_path) as supervision,
            supervision.conversation("c") as parent,
            anyio.create_task_group() as group,
        ):

            async def run() -> None:
                plan = Plan(steps=steps)
                ends.append(await run_plan(parent, plan, begun=lambda row: plan_runs.append(row.id)))

            group.start_soon(run)
            await hang.begun.wait()
            report = await cancel_in_file(tmp_path, plan_runs[0], "cli", {})
    assert report is not None
    assert [run.status for run in report.runs] == ["cancelled"]
    assert [outcome.status for outcome in ends[0].outcomes] == ["cancelled", "refused"]


async def test_a_child_cancels_what_it_started_and_nothing_else(
    tmp_path: Path, script: scripted.Script
) -> None:
    hang = scripted.Hang()
    script.acts.extend([nesting(tmp_path, review(), outcomes=[]), hang])
    async with fanning_out(tmp_path) as fan:
        outer = fan.start(review())
        await hang.begun.wait()
        inner = script.requests[1].run_id
        with pytest.raises(OperatorError, match="what it started itself"):
            await cancel_in_file(tmp_path, outer.run_id, "cli", {RUN: outer.run_id})
        with pytest.raises(OperatorError, match="what it started itself"):
            await cancel_in_file(tmp_path, "c", "cli", {RUN: outer.run_id})
        report = await cancel_in_file(tmp_path, inner, "cli", {RUN: outer.run_id})
    assert report is not None
    assert [run.status for run in report.runs] == ["cancelled"]
    assert fan.outcomes[0].status == "done"


async def test_what_is_on_no_record_is_nothing(tmp_path: Path, script: scripted.Script) -> None:
    assert await cancel_in_file(tmp_path, "nothing", "cli", {}) is None
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    assert await cancel_in_file(tmp_path, "nothing", "cli", {}) is None


async def test_a_switch_of_a_profile_that_is_called_as_a_conversation_is_left_to_the_overseer(
    tmp_path: Path, script: scripted.Script
) -> None:
    hang = scripted.Hang()
    script.acts.append(hang)
    with anyio.fail_after(30):
        async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
            async with parent.fan_out() as fan:
                child = fan.start(review())
                await hang.begun.wait()
                database = await Database.open(tmp_path / DATABASE, MIGRATIONS)
                order = SwitchOrder(profile="c", target="auto", by="cli")
                async with posted(database, this_process(), "switch", "c", order) as switch:
                    await cancel_in_file(tmp_path, child.run_id, "cli", {})  # asked later, and taken
                    assert await switch.taken_back(), "nobody has claimed it"
                await database.aclose()
