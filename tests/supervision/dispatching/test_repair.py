"""The one repair turn: an answer that did not fit is asked for once more, of read-only work only."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink, Usage
from custodes.supervision.dispatching.repair import MAX_QUOTED
from custodes.supervision.events import AttemptStarted, Event
from custodes.supervision.record.schema import DATABASE
from custodes.supervision.work import Budget, Outcome, Work
from support import scripted

RESUMES = scripted.ADAPTER_YAML.replace("structured_output]", "structured_output, resume]")


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def saying(text: str, **fields: Any) -> scripted.Act:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return DispatchResult(text=text, **fields)

    return act


async def ask(project: Path, events: list[Event] | None = None, **fields: Any) -> Outcome:
    observer = None if events is None else events.append
    async with custodes.Supervision(project, observer=observer) as supervision:
        async with supervision.conversation("c") as parent:
            return await parent.dispatch(Work(**{"role": "reviewer", "prompt": "look", **fields}))


@pytest.mark.anyio
async def test_a_runtime_that_resumes_is_told_in_its_own_thread_what_is_wrong(tmp_path: Path) -> None:
    script = scripted.install(tmp_path, "one", adapter_yaml=RESUMES)
    script.acts.append(saying("All good!", native_thread_id="t-1"))
    events: list[Event] = []
    outcome = await ask(tmp_path, events)
    assert outcome.status == "done"
    first, again = script.requests
    assert (first.resume, again.resume) == (None, "t-1")
    assert "it is no JSON object" in again.prompt
    assert "look" not in again.prompt
    assert "All good!" not in again.prompt
    assert [each.repair for each in outcome.attempts] == [False, True]
    assert [each.fallback_reason for each in outcome.attempts] == [None, None]
    assert [e.repair for e in events if isinstance(e, AttemptStarted)] == [False, True]
    with sqlite3.connect(tmp_path / DATABASE) as database:
        rows = database.execute("SELECT number, status FROM attempts ORDER BY number").fetchall()
    database.close()
    assert rows == [(1, "failed"), (2, "done")]


@pytest.mark.anyio
async def test_any_other_is_asked_again_with_its_answer_bounded_and_what_is_wrong_with_it(
    tmp_path: Path,
) -> None:
    script = scripted.install(tmp_path, "one")
    script.acts.append(saying("word " * 10_000, native_thread_id="t-1"))
    assert (await ask(tmp_path)).status == "done"
    again = script.requests[1]
    assert again.resume is None
    assert again.prompt.startswith("look\n\nYou were asked this before")
    assert "it is no JSON object" in again.prompt
    assert MAX_QUOTED < len(again.prompt) < MAX_QUOTED + 1_000


@pytest.mark.anyio
async def test_there_is_never_a_second_one(tmp_path: Path) -> None:
    script = scripted.install(tmp_path, "one", "two")
    script.acts.extend([saying("no"), saying("still no"), saying("no")])
    outcome = await ask(tmp_path)
    assert (outcome.status, len(script.requests)) == ("failed", 2)
    assert outcome.failure is not None
    assert "it is no JSON object" in outcome.failure.reason


@pytest.mark.anyio
async def test_mutable_work_is_never_asked_again(tmp_path: Path) -> None:
    script = scripted.install(tmp_path, "one")
    script.acts.append(saying("All good!"))
    outcome = await ask(tmp_path, role="implementer")
    assert (outcome.status, len(script.requests)) == ("unknown", 1)


@pytest.mark.anyio
async def test_a_failure_of_the_repair_turn_is_the_end_and_falls_back_to_nobody(tmp_path: Path) -> None:
    script = scripted.install(tmp_path, "one", "two")
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    outage = Failure(category="provider", reason="500", retryable=True)
    script.acts.extend([saying("no"), scripted.fail(outage)])
    outcome = await ask(tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.reason) == ("failed", "500")
    assert len(script.requests) == 2


@pytest.mark.anyio
async def test_a_repair_that_the_budget_does_not_hold_leaves_what_the_first_turn_came_to(
    tmp_path: Path,
) -> None:
    script = scripted.install(tmp_path, "one")
    script.acts.append(saying("no", usage=Usage(input_tokens=90, output_tokens=0)))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(tokens=100)) as fan:
            fan.start(Work(role="reviewer", prompt="look", estimate_tokens=90))
        (outcome,) = fan.outcomes
    assert (outcome.status, len(script.requests)) == ("failed", 1)
    assert outcome.failure is not None
    assert "it is no JSON object" in outcome.failure.reason
    assert fan.spent.tokens.spent == 90
