"""A fan-out through everything: real settings, real adapters, a real store; only the runtime is scripted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.adapters.trust import trust
from custodes.supervision.events import AttemptRefused, AttemptStarted, ChildEnded, ChildQueued, Event
from custodes.supervision.work import Budget, Outcome, Work
from support import scripted
from support.works import review

pytestmark = pytest.mark.anyio


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two")


def implement(prompt: str = "change", **fields: Any) -> Work:
    return Work(role="implementer", prompt=prompt, **fields)


async def test_a_dispatch_returns_typed_evidence_and_its_identity(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review("hello"))
    assert outcome.status == "done"
    assert outcome.evidence is not None
    assert outcome.evidence.summary == "hello"
    assert outcome.metadata["gen_ai.provider.name"] == "one"
    assert outcome.metadata["gen_ai.agent.id"] == "reviewer"
    assert outcome.metadata["gen_ai.request.model"] == "large"
    assert outcome.metadata["capacity_scope"] == "one:large"
    assert outcome.metadata["health_state"] == "healthy"
    assert outcome.metadata["health_probe"] is False


async def test_outcomes_come_in_the_order_asked_though_one_fails(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        if request.prompt == "2":
            raise ValueError("a secret in an exception")
        return await scripted.answer(request, progress)

    script.acts.extend([act] * 5)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            for number in range(5):
                fan.start(review(str(number)))
    assert [outcome.status for outcome in fan.outcomes] == ["done", "done", "failed", "done", "done"]
    failure = fan.outcomes[2].failure
    assert failure is not None
    assert failure.category == "provider"
    assert "secret" not in repr(fan.outcomes[2])


async def test_a_limited_pool_is_refused_with_its_wait(tmp_path: Path, script: scripted.Script) -> None:
    script.acts.append(scripted.limit(retry_after_s=60))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        first = await parent.dispatch(review())
        second = await parent.dispatch(review())
    assert first.status == "failed"
    assert second.status == "refused"
    assert second.refusal is not None
    assert second.refusal.category == "capacity"
    assert second.refusal.retry_after_s == 60
    assert [waiting.pool for waiting in second.refusal.waiting] == ["one:large"]
    assert len(script.requests) == 1


async def test_the_other_pool_of_a_limited_adapter_still_serves(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=60))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
        outcome = await parent.dispatch(review(model="small"))
    assert outcome.status == "done"


async def test_next_eligible_covers_a_limit(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.append(scripted.limit(retry_after_s=60))
    events: list[Event] = []
    async with (
        custodes.Supervision(tmp_path, observer=events.append) as supervision,
        supervision.conversation("c") as parent,
    ):
        outcome = await parent.dispatch(review())
        again = await parent.dispatch(review())
    assert [attempt.adapter for attempt in outcome.attempts] == ["one", "two"]
    assert outcome.status == again.status == "done"
    assert [attempt.adapter for attempt in again.attempts] == ["two"]
    started = [event for event in events if isinstance(event, AttemptStarted)]
    assert [event.fallback_reason for event in started] == [None, "capacity", "capacity"]


async def test_what_stands_in_for_a_route_that_cannot_run_says_so(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="same_adapter_default")
    events: list[Event] = []
    async with (
        custodes.Supervision(tmp_path, observer=events.append) as supervision,
        supervision.conversation("c") as parent,
    ):
        mistyped = await parent.dispatch(review(model="smal"))
        meant = await parent.dispatch(review(model="small"))
    assert [each.status for each in (mistyped, meant)] == ["done", "done"]
    assert [event.fallback_reason for event in events if isinstance(event, AttemptStarted)] == [
        "invalid",
        None,
    ]
    assert [each.fallback_reason for each in (*mistyped.attempts, *meant.attempts)] == ["invalid", None]


async def covered(project: Path, *, budget: Budget | None = None, **fields: Any) -> list[str | None]:
    """What the attempts of one more work stand in for, which the row of each says as its attempt does."""
    async with custodes.Supervision(project) as supervision, supervision.conversation("covered") as parent:
        async with parent.fan_out(budget=budget) as fan:
            fan.start(review(**fields))
    (outcome,) = fan.outcomes
    assert outcome.status == "done"
    with closing(sqlite3.connect(project / ".coding-os" / "custodes.db")) as database:
        rows = database.execute(
            "SELECT fallback_reason FROM attempts WHERE conversation = 'covered' ORDER BY number"
        ).fetchall()
    told = [each.fallback_reason for each in outcome.attempts]
    assert [reason for (reason,) in rows] == told
    return told


@pytest.mark.parametrize(
    ("failure", "covers"),
    [
        (Failure(category="auth", reason="log in", outcome="known_failed"), "auth"),
        (Failure(category="unavailable", reason="billing", outcome="known_failed"), "unavailable"),
        (Failure(category="provider", reason="busy", retryable=True, overloaded=True), "provider"),
        (Failure(category="capacity", reason="limit", retryable=True, retry_after_s=60), "capacity"),
    ],
)
async def test_what_stands_in_says_why_the_first_choice_was_not_let_in(
    tmp_path: Path, script: scripted.Script, failure: Failure, covers: str
) -> None:
    script.acts.append(scripted.fail(failure))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    assert await covered(tmp_path) == [covers]


async def test_what_stands_in_for_an_adapter_that_was_changed_meanwhile_says_that_it_is_unavailable(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible", max_parallel=1)

    async def change(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        (tmp_path / ".coding-os" / "adapters" / "one" / "dispatch.py").write_text("# not as it was trusted")
        return await scripted.answer(request, progress)

    script.acts.append(change)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            fan.start(review())
            fan.start(review())
    assert [each.attempts[0].adapter for each in fan.outcomes] == ["one", "two"]
    assert [each.attempts[0].fallback_reason for each in fan.outcomes] == [None, "unavailable"]


async def test_what_stands_in_for_a_route_that_the_budget_does_not_hold_says_so(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    costing = scripted.ADAPTER_YAML.format(id="two").replace("output]", "output, usage, cost]")
    folder = tmp_path / ".coding-os" / "adapters" / "two"
    (folder / "adapter.yaml").write_text(costing)
    trust(folder)
    assert await covered(tmp_path, budget=Budget(usd=1)) == ["budget"]


async def test_a_repair_turn_of_what_stands_in_stands_in_for_the_same(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def chat(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return DispatchResult(text="All good!")

    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts += [scripted.limit(retry_after_s=60), chat]
    assert await covered(tmp_path) == [None, "capacity", "capacity"]


async def test_accepted_mutable_work_never_moves_on(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.append(
        scripted.fail(Failure(category="provider", retryable=True, outcome="unknown", reason="500"))
    )
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(implement())
    assert outcome.status == "unknown"
    assert len(script.requests) == 1


async def test_read_only_work_moves_on_after_a_provider_outage(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.append(
        scripted.fail(Failure(category="provider", retryable=True, outcome="unknown", reason="500"))
    )
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review())
    assert outcome.status == "done"
    assert [attempt.adapter for attempt in outcome.attempts] == ["one", "two"]


async def test_a_wait_outlasts_a_short_limit_and_its_probe_heals(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.limit(retry_after_s=1))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review(wait=30))
    assert outcome.status == "done"
    assert [attempt.health_probe for attempt in outcome.attempts] == [False, True]


async def test_writers_of_one_scope_take_turns_and_readers_run_together(
    tmp_path: Path, script: scripted.Script
) -> None:
    running: dict[str, int] = {"implementer": 0, "reviewer": 0}
    most: dict[str, int] = {"implementer": 0, "reviewer": 0}
    readers = anyio.Event()

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        running[request.role] += 1
        most[request.role] = max(most[request.role], running[request.role])
        if running["reviewer"] == 2:
            readers.set()
        if request.role == "reviewer":
            with anyio.fail_after(10):
                await readers.wait()
        await anyio.wait_all_tasks_blocked()
        running[request.role] -= 1
        return await scripted.answer(request, progress)

    script.acts.extend([act] * 4)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            fan.start(implement(scope=("src",)))
            fan.start(implement(scope=("src/a.py",)))
            fan.start(review())
            fan.start(review())
    assert {outcome.status for outcome in fan.outcomes} == {"done"}
    assert most == {"implementer": 1, "reviewer": 2}


async def test_max_parallel_caps_what_runs_and_all_finish(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, max_parallel=2)
    running = most = 0

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.01)
        running -= 1
        return await scripted.answer(request, progress)

    script.acts.extend([act] * 8)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            for _ in range(8):
                fan.start(review())
    assert {outcome.status for outcome in fan.outcomes} == {"done"}
    assert most == 2


async def test_the_budget_of_children_refuses_the_rest_in_their_places(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(budget=Budget(children=2)) as fan:
            for _ in range(3):
                fan.start(review())
    assert [outcome.status for outcome in fan.outcomes] == ["done", "done", "refused"]
    refusal = fan.outcomes[2].refusal
    assert refusal is not None
    assert refusal.category == "budget"


async def test_after_the_deadline_nothing_starts_and_what_finished_is_returned(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def slow(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await anyio.sleep(0.5)
        return await scripted.answer(request, progress)

    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(review())  # the tree stands: its start is none of the deadline's matter
        script.acts.append(slow)
        async with parent.fan_out(budget=Budget(wall_seconds=0.3), max_parallel=1) as fan:
            fan.start(review())
            fan.start(review())
    assert [outcome.status for outcome in fan.outcomes] == ["done", "refused"]


async def test_cancelling_one_child_leaves_its_siblings(tmp_path: Path, script: scripted.Script) -> None:
    begun = anyio.Event()

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.append(hang)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            child = fan.start(review("hangs"))
            await begun.wait()
            fan.start(review("works"))
            first = await child.cancel("enough")
            second = await child.cancel("again")
    assert first is second
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled", "done"]


async def test_a_cancelled_host_ends_its_children_before_the_cancel_goes_on(
    tmp_path: Path, script: scripted.Script
) -> None:
    begun, ended = anyio.Event(), list[str]()

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
                ended.append(request.run_id)
        raise AssertionError

    script.acts.append(hang)
    events: list[Event] = []
    async with custodes.Supervision(tmp_path, observer=events.append) as supervision:
        async with supervision.conversation("c") as parent:
            with anyio.CancelScope() as scope:
                async with parent.fan_out() as fan:
                    fan.start(review())
                    await begun.wait()
                    scope.cancel()
            assert scope.cancelled_caught
            assert len(ended) == 1
    outcomes = [event.outcome.status for event in events if isinstance(event, ChildEnded)]
    assert outcomes == ["cancelled"]


async def test_the_hosts_own_exception_passes_as_it_is(tmp_path: Path, script: scripted.Script) -> None:
    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.append(hang)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        fan = parent.fan_out()

        async def leave_with_an_error() -> None:
            async with fan:
                fan.start(review())
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await leave_with_an_error()
    assert [outcome.status for outcome in fan.outcomes] == ["cancelled"]


async def test_an_unknown_role_is_refused_with_the_near_miss(tmp_path: Path, script: scripted.Script) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(Work(role="reviwer", prompt="x"))
    assert outcome.status == "refused"
    assert outcome.refusal is not None
    assert "reviewer" in outcome.refusal.reason


async def test_malformed_settings_refuse_a_dispatch_and_stay_as_they_are(
    tmp_path: Path, script: scripted.Script
) -> None:
    settings = tmp_path / ".coding-os" / "hub-settings.json"
    settings.write_text('{"model_routing": {"enabled": true,}}')
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review())
    assert outcome.status == "refused"
    assert outcome.refusal is not None
    assert outcome.refusal.category == "settings"
    assert settings.read_text() == '{"model_routing": {"enabled": true,}}'


async def test_suggest_returns_the_route_that_explicit_would_run_and_spends_nothing(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, mode="suggest")
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(review(model="small"))
    assert outcome.status == "skipped"
    assert outcome.output_json is not None
    assert outcome.output_json["proposed_route"]["model"] == "small"
    assert script.requests == []


async def test_disabled_the_hosts_own_dispatch_is_called_and_nothing_else_happens(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, enabled=False)

    async def host(work: Work) -> dict[str, str]:
        return {"answer": work.prompt}

    before = sorted(tmp_path.rglob("*"))
    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c", dispatch=host) as parent:
            outcome = await parent.dispatch(review("mine"))
            async with parent.fan_out() as fan:
                fan.start(review("other"))
    assert outcome.native == {"answer": "mine"}
    assert fan.outcomes[0].native == {"answer": "other"}
    assert script.requests == []
    assert sorted(tmp_path.rglob("*")) == before


async def test_disabled_the_hosts_own_exceptions_pass_as_they_are(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, enabled=False)

    async def host(work: Work) -> None:
        raise LookupError("the host's")

    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c", dispatch=host) as parent:
            with pytest.raises(LookupError, match="the host's"):
                await parent.dispatch(review())


async def test_below_the_adaptive_gate_work_runs_plainly_on_the_session_default(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, mode="adaptive", roles={"reviewer": {"adapter": "two"}})
    async with custodes.Supervision(tmp_path) as supervision:
        async with supervision.conversation("c", adapter="one") as parent:
            plain = await parent.dispatch(review(complexity="CLEAR"))
            routed = await parent.dispatch(review(complexity="COMPLEX"))
    assert plain.status == routed.status == "done"
    assert plain.metadata["gen_ai.provider.name"] == "one"
    assert "health_state" not in plain.metadata
    assert routed.metadata["gen_ai.provider.name"] == "two"


async def test_a_running_child_keeps_its_route_when_the_policy_changes(
    tmp_path: Path, script: scripted.Script
) -> None:
    scripted.configure(tmp_path, max_parallel=1)
    begun, go_on = anyio.Event(), anyio.Event()

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        begun.set()
        await go_on.wait()
        return await scripted.answer(request, progress)

    script.acts.append(act)
    outcomes: tuple[Outcome, ...] = ()
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            fan.start(review("running"))
            fan.start(review("queued"))
            await begun.wait()
            scripted.configure(tmp_path, max_parallel=1, roles={"reviewer": {"adapter": "two"}})
            fan.start(review("later"))
            go_on.set()
        outcomes = fan.outcomes
    assert [outcome.attempts[0].adapter for outcome in outcomes] == ["one", "one", "two"]


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"text": "done"},
        DispatchResult(text=5),  # type: ignore[arg-type]
        DispatchResult(native_thread_id="half a pair \ud800"),
        DispatchResult(structured=object()),
        DispatchResult(failure="broken"),  # type: ignore[arg-type]
        DispatchResult(failure=Failure(category="capacity", reason="x", retry_after_s="soon")),  # type: ignore[arg-type]
        DispatchResult(failure=Failure(category="odd", reason="x")),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_result_fails_its_own_child_alone_and_is_never_sent_again(
    tmp_path: Path, script: scripted.Script, result: Any
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        return result if request.role == "implementer" else await scripted.answer(request, progress)

    script.acts.extend([act, act])
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            fan.start(implement())
            fan.start(review())
    assert [outcome.status for outcome in fan.outcomes] == ["unknown", "done"]
    assert len(fan.outcomes[0].attempts) == 1
    assert len(script.requests) == 2


@pytest.mark.parametrize("scope", ["null\0", "x" * 5000])
async def test_a_scope_that_is_no_path_is_refused_and_nothing_runs(
    tmp_path: Path, script: scripted.Script, scope: str
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(implement(scope=(scope,)))
    assert outcome.status == "refused"
    assert outcome.refusal is not None
    assert outcome.refusal.category == "invalid"
    assert script.requests == []


async def test_a_fan_out_without_any_slot_is_refused_where_it_is_asked_for(
    tmp_path: Path, script: scripted.Script
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        with pytest.raises(ValueError, match="max_parallel"):
            parent.fan_out(max_parallel=0)


@pytest.mark.parametrize("name", ["", "half a pair \ud800", 5])
async def test_a_conversation_id_that_cannot_be_stored_is_refused_where_it_is_given(
    tmp_path: Path, name: Any
) -> None:
    async with custodes.Supervision(tmp_path) as supervision:
        with pytest.raises((TypeError, ValueError), match="conversation id"):
            supervision.conversation(name)


@pytest.mark.parametrize("name", ["half a pair \ud800", 5, b"shards"])
async def test_a_fan_outs_name_that_cannot_be_stored_is_refused_where_it_is_given(
    tmp_path: Path, name: Any
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        with pytest.raises((TypeError, ValueError), match="a fan-out's name is"):
            parent.fan_out(name=name)


async def test_a_cancel_while_its_pool_is_asked_leaves_no_open_row(
    tmp_path: Path, script: scripted.Script
) -> None:
    warm, go, scope = anyio.Event(), anyio.Event(), anyio.CancelScope()

    async def host() -> None:
        with scope:
            async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
                await parent.dispatch(review())
                warm.set()
                await go.wait()
                await parent.dispatch(review())

    database = tmp_path / ".coding-os" / "custodes.db"
    async with anyio.create_task_group() as group:
        group.start_soon(host)
        await warm.wait()
        with closing(sqlite3.connect(database, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            go.set()
            await anyio.wait_all_tasks_blocked()  # the admission waits for the writer
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            writer.execute("ROLLBACK")
    with closing(sqlite3.connect(database)) as reader:
        assert reader.execute("SELECT count(*) FROM attempts WHERE status = 'running'").fetchall() == [(0,)]


@pytest.mark.parametrize("refused_by", ["its fan-out", "its pool"])
async def test_a_cancel_while_a_refusal_is_written_gets_the_refusal(
    tmp_path: Path, script: scripted.Script, refused_by: str
) -> None:
    script.acts.append(scripted.limit(retry_after_s=60))
    budget = Budget(children=0) if refused_by == "its fan-out" else Budget()
    decided = anyio.Event()

    def observe(event: Event) -> None:
        if isinstance(event, AttemptRefused) or (isinstance(event, ChildQueued) and budget.children == 0):
            decided.set()

    async with (
        custodes.Supervision(tmp_path, observer=observe) as supervision,
        supervision.conversation("c") as parent,
    ):
        await parent.dispatch(review())
        with closing(
            sqlite3.connect(tmp_path / ".coding-os" / "custodes.db", isolation_level=None)
        ) as writer:
            async with parent.fan_out(budget=budget) as fan, anyio.create_task_group() as group:
                writer.execute("BEGIN IMMEDIATE")
                child = fan.start(review())
                await decided.wait()
                await anyio.wait_all_tasks_blocked()  # the row waits for the writer
                group.start_soon(child.cancel)
                await anyio.wait_all_tasks_blocked()
                assert child.result is None
                writer.execute("ROLLBACK")
            rows = writer.execute("SELECT status FROM attempts WHERE run_id = ?", (child.run_id,)).fetchall()
    assert child.result is not None
    assert (child.result.status, rows) == ("refused", [("refused",)])


async def test_an_adapter_that_exits_ends_its_own_attempt_and_not_the_host(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        raise SystemExit(0)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        first = await parent.dispatch(implement())
        second = await parent.dispatch(review())
    assert (first.status, second.status) == ("unknown", "done")


async def test_an_adapter_that_exits_while_it_is_imported_is_unavailable(
    tmp_path: Path, script: scripted.Script
) -> None:
    folder = tmp_path / ".coding-os" / "adapters" / "one"
    (folder / "dispatch.py").write_text("raise SystemExit(0)")
    trust(folder)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(implement())
    assert outcome.status == "failed"
    assert outcome.failure is not None
    assert outcome.failure.category == "unavailable"


async def test_f9_a_childs_timeout_counts_from_its_own_start_and_not_while_it_waits_for_a_slot(
    tmp_path: Path, script: scripted.Script
) -> None:
    """All of them together take longer than any of them may."""
    scripted.configure(tmp_path, max_parallel=1)

    async def slow(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        with anyio.fail_after(request.timeout_s):
            await anyio.sleep(0.15)
        return await scripted.answer(request, progress)

    script.acts.extend([slow] * 16)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out() as fan:
            for number in range(16):
                fan.start(review(str(number), timeout=2))
    assert [outcome.status for outcome in fan.outcomes] == ["done"] * 16
    assert fan.spent.wall_seconds.spent > 2


async def test_settings_that_break_while_the_first_child_starts_refuse_it_and_the_next_is_served(
    tmp_path: Path, script: scripted.Script
) -> None:
    settings = tmp_path / ".coding-os" / "hub-settings.json"
    good = settings.read_text()

    def breaks_it(event: Event) -> None:
        if isinstance(event, ChildQueued):
            settings.write_text("{" if event.name == "first" else good)

    with anyio.fail_after(30):
        async with (
            custodes.Supervision(tmp_path, observer=breaks_it) as supervision,
            supervision.conversation("c") as parent,
        ):
            first = await parent.dispatch(review(name="first"))
            settings.write_text(good)
            second = await parent.dispatch(review(name="second"))
    assert first.refusal is not None
    assert first.refusal.category == "settings"
    assert second.status == "done"


async def test_a_writer_whose_project_file_was_taken_away_is_not_told_to_have_been_alone(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        for part in (tmp_path / ".coding-os").glob("custodes.db*"):
            part.unlink()
        return await scripted.answer(request, progress)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(implement())
        after = await parent.dispatch(review())
    assert outcome.status == "unknown"
    assert outcome.failure is not None
    assert "deleted or replaced" in outcome.failure.reason
    assert after.refusal is not None
    assert "start that again" in after.refusal.reason


async def test_an_attempt_that_a_bug_of_ours_ends_leaves_no_open_row(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def buggy(*arguments: object) -> None:
        raise RuntimeError("a secret in an exception")

    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        with monkeypatch.context() as bug:
            bug.setattr("custodes.supervision.dispatching.attempt.request_for", buggy)
            ends = [await parent.dispatch(review()), await parent.dispatch(implement())]
        after = await parent.dispatch(review())
    assert [outcome.status for outcome in (*ends, after)] == ["failed", "unknown", "done"]
    assert "secret" not in repr(ends)
    with closing(sqlite3.connect(tmp_path / ".coding-os" / "custodes.db")) as database:
        statuses = database.execute("SELECT status FROM attempts ORDER BY started").fetchall()
    assert statuses == [("failed",), ("unknown",), ("done",)]
