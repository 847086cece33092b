"""The bundle of a conversation: what its children brought, as one bounded value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.supervision import bundle as bundles
from custodes.supervision.bundle import (
    BacktrackTold,
    EvidenceBundle,
    Gathering,
    NativeSession,
    entries_of,
)
from custodes.supervision.evidence import AnalystEvidence, Backtrack
from custodes.supervision.work import Attempt, Outcome, Refusal, Status, Work
from support import scripted


def outcome(name: str, status: Status = "done", summary: str = "s", **fields: Any) -> Outcome:
    evidence = AnalystEvidence(summary=summary) if status == "done" else None
    return Outcome(
        run_id=f"run-{name}", role="analyst", name=name, status=status, **{"evidence": evidence, **fields}
    )


def attempt(**fields: Any) -> Attempt:
    return Attempt(
        number=1,
        adapter="one",
        model="large",
        effort=None,
        pool="one:large",
        health_state="healthy",
        health_probe=False,
        **fields,
    )


def gathered(*outcomes: Outcome) -> EvidenceBundle:
    gathering = Gathering("c")
    for each in outcomes:
        gathering.add(each)
    return gathering.bundle


def test_discoveries_and_backtracks_stand_apart_from_the_slice_that_told_them() -> None:
    said = AnalystEvidence(
        summary="s", discoveries=("a", "b"), backtrack=Backtrack(step="find", reason="wrong")
    )
    found = gathered(outcome("x", evidence=said, attempts=(attempt(native_thread_id="t-1"),)))
    (only,) = found.slices
    assert only.evidence == AnalystEvidence(summary="s")
    assert only.native == NativeSession(adapter="one", id="t-1")
    assert [each.text for each in found.discoveries] == ["a", "b"]
    (told,) = found.backtracks
    assert (told.run_id, told.step, told.reason, told.followed) == ("run-x", "find", "wrong", False)


def test_a_role_is_degraded_where_its_work_is_worth_less_than_was_asked_for() -> None:
    timeout = Failure(category="timeout", reason="no answer within 5 s")
    found = gathered(
        outcome("well"),
        outcome("cut", "unknown", failure=timeout),
        outcome("stopped", "cancelled"),
        outcome("moved", attempts=(attempt(fallback_reason="capacity"),)),
        outcome("lost", evidence=None),
        outcome("dry", "skipped"),
        outcome("the host's own", evidence=None, native=object()),
    )
    assert [(each.name, each.status, each.reason) for each in found.degraded] == [
        ("cut", "unknown", "timeout: no answer within 5 s"),
        ("stopped", "cancelled", "cancelled"),
        ("moved", "done", "done on one:large, since the first choice failed as capacity"),
        ("lost", "done", "it is done, but what it said of it is lost"),
    ]
    assert [each.name for each in found.slices] == ["well", "moved"]


def test_what_never_ran_is_a_refusal_and_no_degraded_role() -> None:
    refusal = Refusal(category="capacity", reason="all at capacity", retry_after_s=7)
    found = gathered(outcome("late", "refused", refusal=refusal))
    assert found.degraded == ()
    assert [(r.category, r.reason, r.retry_after_s) for r in found.refusals] == [
        ("capacity", "all at capacity", 7)
    ]


def test_it_is_a_value_and_goes_to_json_and_back() -> None:
    gathering = Gathering("c")
    gathering.add(outcome("a"))
    before = gathering.bundle
    gathering.add(outcome("b"))
    assert [each.name for each in before.slices] == ["a"]
    after = gathering.bundle
    assert msgspec.json.decode(msgspec.json.encode(after), type=EvidenceBundle) == after
    with pytest.raises(AttributeError):
        after.left_out = 1  # type: ignore[misc]


def test_past_the_bound_the_oldest_entries_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MAX_BUNDLE_BYTES", 4_000)
    found = gathered(*(outcome(str(number), summary="x" * 1_000) for number in range(9)))
    assert found.left_out == 9 - len(found.slices) > 0
    assert found.slices[-1].name == "8"
    assert len(msgspec.json.encode(found)) < 4_300
    huge = gathered(outcome("huge", summary="x" * 9_000))
    assert (len(huge.slices), huge.left_out) == (1, 0)


def test_of_a_plan_what_came_of_a_backtrack_is_told_in_place_of_what_was_said() -> None:
    said = outcome("x", evidence=AnalystEvidence(summary="s", backtrack=Backtrack(step="a", reason="r")))
    came = BacktrackTold(run_id="run-x", name="x", role="analyst", step="a", reason="r", followed=True)
    assert Gathering.of("c", [said], [came]).bundle.backtracks == (came,)


def test_an_outcome_brings_each_thing_once() -> None:
    assert [type(each).__name__ for each in entries_of(outcome("x"))] == ["BundledSlice"]


@pytest.mark.anyio
async def test_a_conversation_has_its_bundle_at_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")
    seen: list[EvidenceBundle] = []

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        seen.append(parent.bundle)
        return await scripted.answer(request, progress)

    script.acts.extend([act, act])
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        first = await parent.dispatch(Work(role="reviewer", prompt="first"))
        async with parent.fan_out() as fan:
            fan.start(Work(role="reviewer", prompt="second"))
            fan.start(Work(role="reviwer", prompt="third"))
        bundle = parent.bundle
    assert [len(each.slices) for each in seen] == [0, 1]
    assert bundle.conversation == "c"
    assert [each.evidence.summary for each in bundle.slices] == ["first", "second"]
    assert bundle.slices[0].run_id == first.run_id
    assert [each.category for each in bundle.refusals] == ["invalid"]
