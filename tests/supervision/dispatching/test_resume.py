"""Going on in the native thread of an earlier run, or being told why there is none to go on in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision.conversation import Conversation
from custodes.supervision.work import Outcome, Work
from support import scripted

RESUMES = scripted.ADAPTER_YAML.replace("structured_output]", "structured_output, resume]")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two", adapter_yaml=RESUMES)


async def threaded(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
    return DispatchResult(text='{"summary": "s"}', native_thread_id="t-1")


async def dispatch(parent: Conversation, **fields: Any) -> Outcome:
    return await parent.dispatch(Work(**{"role": "reviewer", "prompt": "x", **fields}))


async def asked(project: Path, **fields: Any) -> Outcome:
    """What comes of going on with a run of adapter one, model small."""
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        first = await dispatch(parent, adapter="one", model="small")
        return await dispatch(parent, **{"resume": first.run_id, **fields})


@pytest.mark.anyio
async def test_the_child_goes_on_in_that_runs_thread_on_its_adapter_and_model(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(threaded)
    scripted.configure(tmp_path, roles={"reviewer": {"adapter": "two", "model": "large"}})
    outcome = await asked(tmp_path, prompt="and now?")
    assert outcome.status == "done"
    again = script.requests[-1]
    assert (again.resume, again.model, again.prompt) == ("t-1", "small", "and now?")
    assert again.run_id == outcome.run_id != script.requests[0].run_id
    assert outcome.attempts[0].adapter == "one"


@pytest.mark.anyio
async def test_no_other_adapter_stands_in_for_the_one_that_knows_the_thread(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([threaded, scripted.limit(60)])
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    outcome = await asked(tmp_path)
    assert (outcome.status, outcome.failure and outcome.failure.category) == ("failed", "capacity")
    assert len(script.requests) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"resume": "nix"}, "there is no run 'nix' on record"),
        ({"role": "analyst"}, "is a reviewer's, and this work is a analyst's; role 'reviewer' would work"),
        ({"adapter": "two"}, "ran on adapter 'one' and goes on there, not on 'two'"),
        ({"model": "large"}, "ran on model 'small' and goes on there, not on 'large'"),
    ],
)
async def test_a_run_that_this_work_cannot_go_on_with_is_refused_as_invalid(
    tmp_path: Path, script: scripted.Script, fields: dict[str, str], says: str
) -> None:
    script.acts.append(threaded)
    outcome = await asked(tmp_path, **fields)
    assert outcome.status == "refused"
    assert outcome.refusal is not None
    assert (outcome.refusal.category, says in outcome.refusal.reason) == ("invalid", True), outcome.refusal
    assert len(script.requests) == 1


@pytest.mark.anyio
async def test_a_run_without_a_native_thread_is_refused(tmp_path: Path, script: scripted.Script) -> None:
    outcome = await asked(tmp_path)
    assert outcome.refusal is not None
    assert "has no native thread" in outcome.refusal.reason


@pytest.mark.anyio
async def test_an_adapter_without_the_capability_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")
    script.acts.append(threaded)
    outcome = await asked(tmp_path)
    assert outcome.refusal is not None
    assert (outcome.refusal.category, "'resume' is not in its capabilities" in outcome.refusal.reason) == (
        "invalid",
        True,
    )


@pytest.mark.anyio
async def test_a_run_that_still_runs_is_refused(tmp_path: Path, script: scripted.Script) -> None:
    running, go_on = anyio.Event(), anyio.Event()

    async def wait(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        running.set()
        await go_on.wait()
        return await threaded(request, progress)

    script.acts.append(wait)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            child = fan.start(Work(role="reviewer", prompt="x"))
            await running.wait()
            outcome = await dispatch(parent, resume=child.run_id)
            go_on.set()
    assert outcome.refusal is not None
    assert "still runs" in outcome.refusal.reason


@pytest.mark.anyio
async def test_a_dry_run_of_it_shows_the_pinned_route_and_runs_nothing(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(threaded)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        first = await dispatch(parent, adapter="one", model="small")
        scripted.configure(tmp_path, mode="suggest", orchestrator={"adapter": "two"})
        outcome = await dispatch(parent, resume=first.run_id)
    assert outcome.output_json is not None
    assert outcome.output_json["proposed_route"]["adapter"] == "one"
    assert len(script.requests) == 1


@pytest.mark.anyio
async def test_below_the_adaptive_gate_nobody_looks_at_the_record(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, mode="adaptive")
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await dispatch(parent, resume="run")
    assert outcome.refusal is not None
    assert "below the adaptive gate" in outcome.refusal.reason
