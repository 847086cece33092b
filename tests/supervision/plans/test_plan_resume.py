"""Going on with a plan: what is kept, what runs again, at what it stops, and who may."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import anyio
import msgspec
import pytest
from msgspec.structs import replace

import custodes
from custodes.adapters.port import Certainty, DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.evidence import ImplementerEvidence
from custodes.supervision.plans.checkpoints import StepRow, StepStatus
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_resume import resume_plan
from custodes.supervision.plans.plan_run import PlanEnd, run_plan
from custodes.supervision.plans.plan_standing import PlanRunError, standing
from custodes.supervision.plans.resolution import ResolutionError, resolve_in_file
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.records import AttemptRow, RowStatus
from custodes.supervision.record.schema import DATABASE
from custodes.supervision.work import Attempt, Budget, Outcome
from support import scripted


def step(step_id: str, *needs: str, role: Any = "reviewer", **fields: Any) -> Step:
    return Step(id=step_id, role=role, prompt=f"do {step_id}", needs=needs, **fields)


PLAN = Plan(
    steps=(step("find"), step("fix", "find", role="implementer", scope=("src",)), step("check", "fix")),
)
UNKNOWN = Failure(category="timeout", reason="no answer within 5 s", accepted=True)


async def run(project: Path, plan: Plan = PLAN, resume: str = "", **fields: Any) -> PlanEnd:
    async with custodes.Supervision(project) as supervision, supervision.conversation("c") as parent:
        if resume:
            return await resume_plan(parent, resume, plan=plan, **fields)
        return await run_plan(parent, plan, **fields)


def statuses(end: PlanEnd) -> list[str]:
    return [outcome.status for outcome in end.outcomes]


def asked(script: scripted.Script) -> list[str]:
    return [request.prompt.split("\n")[0] for request in script.requests]


# -- What a resume does with a step: the rule.


def row(status: StepStatus, *, mutable: bool = True, **fields: Any) -> StepRow:
    return StepRow(plan="p", step="s", run_id="r", mutable=mutable, status=status, started=0.0, **fields)


def attempts(*found: RowStatus) -> list[AttemptRow]:
    return [
        AttemptRow(run_id="r", number=number, conversation="c", role="implementer", status=each)
        for number, each in enumerate(found, 1)
    ]


@pytest.mark.parametrize("status", get_args(get_args(StepStatus)[0]) + get_args(get_args(StepStatus)[1]))
def test_a_read_only_step_is_kept_where_it_is_done_and_else_runs_again(status: StepStatus) -> None:
    assert standing(row(status, mutable=False), attempts("unknown")) == (
        "keep" if status == "done" else "again"
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), "again"),
        (("refused",), "again"),
        (("failed",), "again"),
        (("failed", "refused"), "again"),
        (("done",), "keep"),
        (("failed", "done"), "keep"),
        (("unknown",), "stop"),
        (("cancelled",), "stop"),
        (("running",), "stop"),
        (("failed", "unknown"), "stop"),
    ],
)
def test_a_mutable_step_in_flight_stands_as_its_attempts_say(
    found: tuple[RowStatus, ...], expected: str
) -> None:
    assert standing(row("running"), attempts(*found)) == expected


def test_a_mutable_step_that_no_record_was_kept_of_stops_unless_it_is_done() -> None:
    assert standing(row("running", supervised=False), ()) == "stop"
    assert standing(row("cancelled", supervised=False), ()) == "stop"
    cases: tuple[tuple[Certainty, str], ...] = (("unknown", "stop"), ("known_failed", "again"))
    for certainty, expected in cases:
        failure = Failure(category="provider", reason="the host's own dispatch raised", outcome=certainty)
        outcome = Outcome(run_id="r", role="implementer", name="s", status="failed", failure=failure)
        assert standing(row("failed", supervised=False, outcome=outcome), ()) == expected
    assert standing(row("done", supervised=False), ()) == "keep"


def test_a_mutable_step_that_ended_stops_where_its_effect_is_unknown() -> None:
    def cancelled(*made: Attempt) -> StepRow:
        outcome = Outcome(run_id="r", role="implementer", name="s", status="cancelled", attempts=made)
        return row("cancelled", outcome=outcome)

    stopped = Attempt(
        number=1,
        adapter="one",
        model=None,
        effort=None,
        pool="one",
        health_state="healthy",
        health_probe=False,
    )
    known = replace(stopped, failure=Failure(category="capacity", reason="limit", outcome="known_failed"))
    assert standing(cancelled(), ()) == "again"
    assert standing(cancelled(known), ()) == "again"
    assert standing(cancelled(known, stopped), ()) == "stop"
    assert standing(row("unknown"), ()) == "stop"
    assert standing(row("failed"), ()) == "again"
    assert standing(row("refused"), ()) == "again"
    assert standing(row("unknown", resolved=True), ()) == "again"


# -- Going on.


@pytest.mark.anyio
async def test_what_is_done_is_kept_with_its_evidence_and_what_failed_runs_again(
    tmp_path: Path, script: scripted.Script
) -> None:
    wrong = Failure(category="invalid", reason="no", outcome="known_failed")
    script.acts.extend([scripted.answer, scripted.fail(wrong)])
    first = await run(tmp_path)
    assert statuses(first) == ["done", "failed", "refused"]
    again = await run(tmp_path, resume=first.run)
    assert statuses(again) == ["done", "done", "done"]
    assert asked(script) == ["do find", "do fix", "do fix", "do check"]
    assert again.outcomes[0] == first.outcomes[0]
    assert '"summary":"do find"' in script.requests[2].prompt
    assert [each.name for each in again.bundle.slices] == ["find", "fix", "check"]
    assert again.run == first.run
    once_more = await run(tmp_path, resume=first.run)
    assert statuses(once_more) == ["done", "done", "done"]
    assert len(script.requests) == 4


@pytest.mark.anyio
async def test_a_mutable_step_of_unknown_outcome_is_never_run_again_by_itself(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    assert (statuses(first), first.uncertain) == (["done", "unknown", "refused"], ("fix",))
    again = await run(tmp_path, resume=first.run)
    assert (statuses(again), again.uncertain) == (["done", "unknown", "refused"], ("fix",))
    assert asked(script) == ["do find", "do fix"]


@pytest.mark.anyio
async def test_an_operators_done_keeps_it_and_hands_on_what_he_says_it_brought(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    evidence = {"summary": "fixed by hand", "files_changed": ["src/a.py"]}
    resolved = await resolve_in_file(tmp_path, first.run, "done", "cli", step="fix", evidence=evidence)
    assert (resolved.step, resolved.before, resolved.outcome) == ("fix", "unknown", "done")
    again = await run(tmp_path, resume=first.run)
    assert statuses(again) == ["done", "done", "done"]
    assert again.outcomes[1].evidence == ImplementerEvidence(
        summary="fixed by hand", files_changed=("src/a.py",)
    )
    assert asked(script) == ["do find", "do fix", "do check"]
    assert "fixed by hand" in script.requests[-1].prompt
    async with RecordFile(tmp_path) as file:
        (attempt,) = await file.run(resolved.run_id)
    assert (attempt.status, attempt.reason) == ("done", "done, as an operator says")
    log = (tmp_path / ".coding-os" / "extensions-audit.log").read_text()
    assert '"action":"runs.resolve"' in log
    assert f"step fix of plan run {first.run}: unknown is now done" in log


@pytest.mark.anyio
async def test_an_operators_failed_lets_it_run_again_and_may_be_taken_back_before_that(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    await resolve_in_file(tmp_path, first.run, "done", "cli", step="fix")
    await resolve_in_file(tmp_path, first.run, "failed", "cli", step="fix")
    again = await run(tmp_path, resume=first.run)
    assert statuses(again) == ["done", "done", "done"]
    assert asked(script) == ["do find", "do fix", "do fix", "do check"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("target", "step_id", "evidence", "says"),
    [
        ("plan", "find", None, "step 'find' of plan run .* is done"),
        ("plan", "check", None, "is known to have had no effect|is read-only, and a resume runs it again"),
        ("plan", "fxi", None, "has no step 'fxi'; did you mean 'fix'"),
        ("plan", None, None, "name the step too; it has find, fix, check"),
        ("plan", "fix", {"summary": 3}, "not the implementer's evidence"),
        ("nix", None, None, "there is no run 'nix' on record"),
        ("nix", "fix", None, "there is no plan run 'nix' on record"),
    ],
)
async def test_what_cannot_be_resolved_is_said_and_changes_nothing(
    tmp_path: Path,
    script: scripted.Script,
    target: str,
    step_id: str | None,
    evidence: dict[str, Any] | None,
    says: str,
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    run_id = first.run if target == "plan" else target
    async with RecordFile(tmp_path) as file:
        before = await file.plan(first.run)
        with pytest.raises(ResolutionError, match=says):
            await resolve_in_file(tmp_path, run_id, "done", "cli", step=step_id, evidence=evidence)
        assert await file.plan(first.run) == before


@pytest.mark.anyio
async def test_a_run_of_no_plan_is_resolved_by_its_own_id_once(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.append(scripted.fail(UNKNOWN))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(custodes.Work(role="implementer", prompt="x"))
    assert outcome.status == "unknown"
    with pytest.raises(ResolutionError, match="is of no plan"):
        await resolve_in_file(tmp_path, outcome.run_id, "done", "cli", evidence={"summary": "s"})
    await resolve_in_file(tmp_path, outcome.run_id, "failed", "cli")
    async with RecordFile(tmp_path) as file:
        (attempt,) = await file.run(outcome.run_id)
    assert (attempt.status, attempt.reason) == ("failed", "failed, as an operator says")
    with pytest.raises(ResolutionError, match="ended as failed; only mutable work of unknown outcome"):
        await resolve_in_file(tmp_path, outcome.run_id, "failed", "cli")


@pytest.mark.anyio
async def test_a_plans_step_is_resolved_by_its_runs_own_id_too(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    resolved = await resolve_in_file(tmp_path, first.outcomes[1].run_id, "done", "cli")
    assert (resolved.plan, resolved.step) == (first.run, "fix")


@pytest.mark.anyio
async def test_a_step_that_was_cancelled_at_its_work_is_the_operators_to_resolve(
    tmp_path: Path, script: scripted.Script
) -> None:
    at_work = anyio.Event()

    async def hang(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        at_work.set()
        await anyio.sleep_forever()
        raise AssertionError

    script.acts.extend([scripted.answer, hang])
    begun: list[str] = []
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                await at_work.wait()
                scope.cancel()

            group.start_soon(cancel)
            await run(tmp_path, begun=lambda row: begun.append(row.id))
    async with RecordFile(tmp_path) as file:
        seen = await file.plan(begun[0])
    assert seen is not None
    assert (seen.status, seen.abandoned) == ("unknown", False)
    assert [(s.status, s.uncertain) for s in seen.steps] == [
        ("done", False),
        ("cancelled", True),
        (None, False),
    ]
    again = await run(tmp_path, resume=begun[0])
    assert (statuses(again), again.uncertain) == (["done", "cancelled", "refused"], ("fix",))


# -- Who may, and with which plan.


@pytest.mark.anyio
async def test_two_that_go_on_at_once_are_one(tmp_path: Path, script: scripted.Script) -> None:
    wrong = Failure(category="invalid", reason="no", outcome="known_failed")
    script.acts.append(scripted.fail(wrong))
    first = await run(tmp_path)
    ends: list[PlanEnd] = []
    refusals: list[str] = []
    go_on = anyio.Event()

    async def wait(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        await go_on.wait()
        return await scripted.answer(request, progress)

    script.acts.append(wait)

    async def resume() -> None:
        try:
            ends.append(await run(tmp_path, resume=first.run))
        except PlanRunError as error:
            refusals.append(str(error))
            go_on.set()

    async with anyio.create_task_group() as group:
        group.start_soon(resume)
        group.start_soon(resume)
    assert [statuses(end) for end in ends] == [["done", "done", "done"]]
    assert refusals == [f"this process runs plan run {first.run}; it can be gone on with once that has ended"]


@pytest.mark.anyio
async def test_a_plan_run_that_there_is_none_of_is_named(tmp_path: Path, script: scripted.Script) -> None:
    with pytest.raises(PlanRunError, match="there is no plan run 'nix' on record"):
        await run(tmp_path, resume="nix")


@pytest.mark.anyio
async def test_a_changed_plan_is_refused_and_replanned_on_request(
    tmp_path: Path, script: scripted.Script
) -> None:
    first = await run(tmp_path)
    find, fix, check = PLAN.steps
    changed = replace(PLAN, steps=(find, replace(fix, prompt="do better"), check, step("tell", "find")))
    with pytest.raises(PlanRunError, match="has changed since it began; --replan goes on"):
        await run(tmp_path, changed, resume=first.run)
    again = await run(tmp_path, changed, resume=first.run, replan=True)
    assert statuses(again) == ["done"] * 4
    assert sorted(asked(script)[3:]) == ["do better", "do check", "do tell"]
    assert again.outcomes[0] == first.outcomes[0]


@pytest.mark.anyio
async def test_a_replan_never_drops_a_step_whose_effect_nobody_knows(
    tmp_path: Path, script: scripted.Script
) -> None:
    script.acts.extend([scripted.answer, scripted.fail(UNKNOWN)])
    first = await run(tmp_path)
    find, fix, check = PLAN.steps
    renamed = Plan(steps=(find, replace(fix, id="mend"), replace(check, needs=("mend",))))
    with pytest.raises(PlanRunError, match=rf"`cos runs resolve {first.run} fix done\|failed`"):
        await run(tmp_path, renamed, resume=first.run, replan=True)
    await resolve_in_file(tmp_path, first.run, "failed", "cli", step="fix")
    assert statuses(await run(tmp_path, renamed, resume=first.run, replan=True)) == ["done"] * 3


@pytest.mark.anyio
async def test_what_an_earlier_process_spent_counts(tmp_path: Path, script: scripted.Script) -> None:
    plan = Plan(
        steps=tuple(step(name, estimate_tokens=60) for name in "ab"),
        max_parallel=1,
        budget=Budget(tokens=100, children=2),
    )
    first = await run(tmp_path, plan)
    assert statuses(first) == ["done", "refused"]
    again = await run(tmp_path, plan, resume=first.run)
    assert statuses(again) == ["done", "refused"]
    refusal = again.outcomes[1].refusal
    assert refusal is not None
    assert refusal.shortfall is not None
    assert (refusal.shortfall.limit, refusal.shortfall.spent) == ("tokens", 60)
    assert again.spent.tokens.spent == 60


@pytest.mark.anyio
@pytest.mark.parametrize("attempts", [1, 2])
async def test_what_an_attempt_may_use_is_on_record_before_its_runtime_is_called(
    tmp_path: Path, script: scripted.Script, attempts: int
) -> None:
    """So a host that is killed while it runs does not lose it."""
    held: list[Ledger] = []

    async def look(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
            ((ledger,),) = database.execute("SELECT ledger FROM plans")
        held.append(msgspec.json.decode(ledger, type=Ledger))
        return await scripted.answer(request, progress)

    outage = Failure(category="provider", reason="down", retryable=True, accepted=True)
    script.acts.extend([*[scripted.fail(outage)] * (attempts - 1), look])
    scripted.configure(tmp_path, fallback_policy="same_adapter_default")
    plan = Plan(steps=(step("a", model="small", estimate_tokens=60),), budget=Budget(tokens=1_000))
    end = await run(tmp_path, plan)
    assert statuses(end) == ["done"]
    assert [(each.spent.tokens, each.reserved.tokens) for each in held] == [(60 * (attempts - 1), 60)]


@pytest.mark.anyio
async def test_below_the_gate_nothing_is_put_on_record(tmp_path: Path, script: scripted.Script) -> None:
    scripted.configure(tmp_path, mode="adaptive")
    end = await run(tmp_path)
    assert (statuses(end), end.run) == (["done"] * 3, "")
    assert not (tmp_path / ".coding-os" / "custodes.db").exists()


@pytest.mark.anyio
async def test_the_host_s_own_dispatch_is_never_put_on_record(
    tmp_path: Path, script: scripted.Script
) -> None:
    async def host(work: custodes.Work) -> object:
        return object()

    (tmp_path / ".coding-os" / "hub-settings.json").unlink()
    async with (
        custodes.Supervision(tmp_path) as supervision,
        supervision.conversation("c", dispatch=host) as parent,
    ):
        end = await run_plan(parent, PLAN)
    assert (statuses(end), end.run, end.bundle.degraded) == (["done"] * 3, "", ())
    assert all(outcome.native is not None for outcome in end.outcomes)
    assert not (tmp_path / ".coding-os" / "custodes.db").exists()


@pytest.mark.anyio
async def test_a_child_that_runs_a_plan_has_its_steps_done_by_its_owner(
    tmp_path: Path, script: scripted.Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(steps=(step("find"), step("check", "find")))
    ends: list[PlanEnd] = []

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        with monkeypatch.context() as environment:
            for name, value in request.environment.items():
                environment.setenv(name, value)
            nested = custodes.Supervision(tmp_path)
        async with nested, nested.conversation("nested") as child:
            ends.append(await run_plan(child, plan))
        return await scripted.answer(request, progress)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        outcome = await parent.dispatch(custodes.Work(role="reviewer", prompt="run a plan"))
    assert outcome.status == "done"
    (end,) = ends
    assert statuses(end) == ["done", "done"]
    assert '"summary":"do find"' in script.requests[-1].prompt
    async with RecordFile(tmp_path) as file:
        seen = await file.plan(end.run)
        rows = {row.run_id: row for row in await file.conversation("c")}
    assert seen is not None
    assert [each.status for each in seen.steps] == ["done", "done"]
    assert {rows[each.run_id].parent_run for each in seen.steps if each.run_id} == {outcome.run_id}
