"""The breaker as hosts and operators meet it: through settings that change, policies and fallbacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.policy.catalog import serves
from custodes.supervision.work import Outcome, Work
from support import scripted

pytestmark = pytest.mark.anyio


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two")


async def ask(project: Path, *works: Work) -> list[Outcome]:
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        return [await parent.dispatch(work) for work in works]


def review(**fields: Any) -> Work:
    return Work(role="reviewer", prompt="look", **fields)


def wait_of(outcome: Outcome) -> int:
    assert outcome.refusal is not None, outcome
    assert outcome.refusal.retry_after_s is not None
    return outcome.refusal.retry_after_s


async def test_b14_neither_settings_nor_agents_nor_a_disable_touch_a_cooldown(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=600))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
        scripted.configure(tmp_path, max_parallel=5, cooldown={"default_seconds": 1, "maximum_seconds": 1})
        reloaded = await parent.dispatch(review())
        (tmp_path / ".coding-os.yaml").write_text("agents: [two, one]\n")
        relisted = await parent.dispatch(review(adapter="one"))
        scripted.configure(tmp_path, enabled=False)
        assert (await parent.dispatch(review())).refusal is not None
        scripted.configure(tmp_path)
        enabled = await parent.dispatch(review(adapter="one"))
    assert all(595 <= wait_of(outcome) <= 600 for outcome in (reloaded, relisted, enabled))
    assert len(script.requests) == 1


async def test_b20_requests_against_a_cooling_pool_never_reach_the_runtime(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=600))
    outcomes = await ask(tmp_path, *[review()] * 7)
    assert [outcome.status for outcome in outcomes] == ["failed"] + ["refused"] * 6
    assert len(script.requests) == 1


async def test_b17_every_waiting_pool_is_named_and_the_soonest_recovery_is_told(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.extend([scripted.limit(retry_after_s=60), scripted.limit(retry_after_s=5)])
    _, refused = await ask(tmp_path, review(), review())
    assert wait_of(refused) == 5
    assert refused.refusal is not None
    assert {waiting.pool: waiting.recovery_s for waiting in refused.refusal.waiting} == {
        "one:large": 60,
        "two:large": 5,
    }
    assert refused.refusal.reason.startswith("all eligible adapters are at capacity")


@pytest.mark.parametrize("category", ["auth", "unavailable"])
async def test_b23_what_needs_a_person_is_not_sent_again(
    tmp_path: Path, script: scripted.Script, category: Any
) -> None:
    script.acts.append(scripted.fail(Failure(category=category, outcome="known_failed", reason="no")))
    outcomes = await ask(tmp_path, *[review()] * 4)
    assert [outcome.status for outcome in outcomes] == ["failed"] + ["refused"] * 3
    assert len(script.requests) == 1
    assert outcomes[1].refusal is not None
    assert outcomes[1].refusal.category == "unavailable"


async def test_b28_fail_closed_leaves_the_healthy_one_alone_and_next_eligible_uses_it(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=60))
    _, refused = await ask(tmp_path, review(), review())
    assert wait_of(refused) == 60
    assert refused.refusal is not None
    assert [waiting.pool for waiting in refused.refusal.waiting] == ["one:large"]
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    (served,) = await ask(tmp_path, review())
    assert served.status == "done"
    assert [attempt.adapter for attempt in served.attempts] == ["two"]


async def test_callers_beside_a_probe_use_the_fallback(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    probing, go_on = anyio.Event(), anyio.Event()

    async def probe(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        probing.set()
        await go_on.wait()
        return await scripted.answer(request, progress)

    script.acts.extend([scripted.limit(retry_after_s=1), scripted.answer])
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
        await anyio.sleep(1.1)
        script.acts.append(probe)
        async with parent.fan_out() as fan:
            fan.start(review())
            await probing.wait()
            beside = fan.start(review())
            outcome = await beside.outcome()
            go_on.set()
    assert [attempt.adapter for attempt in outcome.attempts] == ["two"]
    assert fan.outcomes[0].attempts[0].health_probe


async def test_r6_same_adapter_default_runs_the_default_model_in_plain_sight(
    tmp_path: Path, script: scripted.Script, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "custodes.dispatch")
    scripted.configure(tmp_path, fallback_policy="same_adapter_default")
    script.acts.append(scripted.limit(retry_after_s=60))
    first, second = await ask(tmp_path, review(model="small"), review(model="small"))
    assert [attempt.model for attempt in first.attempts] == ["small", "large"]
    assert [attempt.model for attempt in second.attempts] == ["large"]
    assert second.metadata["gen_ai.request.model"] == "large"
    assert [attempt.fallback_reason for attempt in (*first.attempts, *second.attempts)] == [
        None,
        "capacity",
        "capacity",
    ]
    covered = f"run {second.run_id} on one:large, falling back after capacity, ended: well"
    assert sum(covered in line for line in caplog.messages) == 1


async def test_r17_a_model_that_nobody_asked_for_is_flagged(tmp_path: Path, script: scripted.Script) -> None:
    async def serve(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return DispatchResult(text=json.dumps({"summary": "x"}), served_model="tiny")

    script.acts.append(serve)
    (outcome,) = await ask(tmp_path, review())
    assert outcome.status == "done"
    assert outcome.attempts[0].model_mismatch
    assert outcome.metadata["model_mismatch"] is True
    assert outcome.metadata["gen_ai.request.model"] == "tiny"


async def test_a_host_is_told_a_roles_route_by_the_same_predicate_as_dispatch(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, mode="adaptive", roles={"reviewer": {"adapter": "two", "model": "small"}})
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        route = parent.role_route("reviewer", complexity="COMPLEX")
        below = parent.role_route("reviewer", complexity="CLEAR")
        unclassified = parent.role_route("reviewer")
        outcome = await parent.dispatch(review(complexity="COMPLEX"))
        scripted.configure(tmp_path, enabled=False)
        assert parent.role_route("reviewer", complexity="CHAOTIC") is None
    assert route is not None
    assert (route.adapter, route.model) == ("two", "small")
    assert (outcome.attempts[0].adapter, outcome.attempts[0].model) == ("two", "small")
    assert below is unclassified is None


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("claude-sonnet-5", "claude-sonnet-5", True),
        ("claude-sonnet-5", "claude-sonnet-5-20260114", True),
        ("gpt-5.5", "gpt-5.5-2026-04-01", True),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-002", True),
        ("openrouter/gpt-5.5", "gpt-5.5", True),
        ("gpt-5.5", "gpt-5.5-mini", False),
        ("claude-opus-4", "claude-opus-4-8", False),
        ("claude-sonnet-5", "claude-haiku-4-5", False),
    ],
)
def test_a_dated_snapshot_is_the_model_itself(asked: str, served: str, same: bool) -> None:
    assert serves(asked, served) is same
