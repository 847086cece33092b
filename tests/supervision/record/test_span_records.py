"""The tree as the store alone tells it, against the spans that were really emitted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import custodes
from custodes.policy.settings import Settings
from custodes.supervision.record.lost_spans import OWNER_DIED, UNSENT_S, lost
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.records import AttemptRow, Group
from custodes.supervision.record.run_view import AttemptView
from custodes.supervision.record.span_tree import spans_of
from custodes.supervision.work import Work
from custodes.telemetry import Lineage, SpanRecord
from custodes.telemetry.conventions import FALLBACK_REASON
from custodes.telemetry.otlp import read_json
from support import scripted
from support.cos import Cos
from support.genai import SpanWatch
from support.projects import cos, project

__all__ = ["cos", "project"]


def nobody(adapter: str) -> str:
    return ""


def paths(records: Iterable[SpanRecord]) -> list[str]:
    by_id = {record.id: record for record in records}

    def path(record: SpanRecord) -> str:
        return f"{path(by_id[record.parent])} > {record.name}" if record.parent else record.name

    return sorted(path(record) for record in by_id.values())


async def reviewed(project: Path) -> tuple[AttemptView, ...]:
    """A fan-out with a limit, a fallback, a blocked candidate, a refusal and one work alone."""
    script = scripted.install(project, "one", "two")
    scripted.configure(project, fallback_policy="next_eligible", max_parallel=1)
    script.acts.append(scripted.begun(scripted.limit(retry_after_s=60)))
    script.acts.extend([scripted.begun()] * 2)
    async with custodes.Supervision(project) as supervision, supervision.conversation("talk") as parent:
        async with parent.fan_out(name="review") as fan:
            fan.start(Work(role="reviewer", prompt="look"))
            fan.start(Work(role="analyst", prompt="look", model="unheard-of"))
        await parent.dispatch(Work(role="observer", prompt="look", model="small"))
    async with RecordFile(project) as file:
        return await file.conversation("talk")


@pytest.mark.anyio
async def test_what_the_rows_tell_is_what_was_emitted(
    project: Path, span_watch: SpanWatch, anyio_backend: str
) -> None:
    rows = await reviewed(project)
    told = {record.id: record for record in spans_of(rows, until=time.time(), provider=nobody)}
    for span in span_watch.ended:
        assert span.context is not None
        record = told.pop(f"{span.context.span_id:016x}")
        assert record.name == span.name
        assert record.trace == f"{span.context.trace_id:032x}"
        assert record.parent == (f"{span.parent.span_id:016x}" if span.parent else "")
        assert record.kind == span.kind.name.lower()
        assert record.error is (span.status.status_code.name == "ERROR")
        assert span.attributes is not None
        unknown = ("custodes.budget", "custodes.tool_calls")
        emitted = {name: v for name, v in span.attributes.items() if not name.startswith(unknown)}
        assert {**record.attributes} == emitted
    assert not told


@pytest.mark.anyio
async def test_without_a_trace_the_rows_give_the_same_tree_each_time(
    project: Path, anyio_backend: str
) -> None:
    rows = await reviewed(project)
    bare = [replace(row, trace=None) for row in rows]
    told = spans_of(bare, until=0, provider=nobody)
    assert paths(told) == paths(spans_of(rows, until=0, provider=nobody))
    assert told == spans_of(bare, until=0, provider=nobody)
    assert len({record.trace for record in told}) == 1
    assert all(len(record.id) == 16 and len(record.trace) == 32 for record in told)


@pytest.mark.anyio
async def test_the_rows_tell_why_an_only_attempt_stands_in(
    project: Path, span_watch: SpanWatch, anyio_backend: str
) -> None:
    script = scripted.install(project, "one", "two")
    scripted.configure(project, fallback_policy="next_eligible")
    script.acts += [scripted.begun(scripted.limit(retry_after_s=60)), *[scripted.begun()] * 2]
    async with custodes.Supervision(project) as supervision, supervision.conversation("talk") as parent:
        for _ in range(2):
            await parent.dispatch(Work(role="reviewer", prompt="look"))
    async with RecordFile(project) as file:
        rows = await file.conversation("talk")
    told = {record.id: record for record in spans_of(rows, until=time.time(), provider=nobody)}
    emitted = {
        f"{span.context.span_id:016x}": (span.attributes or {}).get(FALLBACK_REASON)
        for span in span_watch.ended
        if span.context is not None and f"{span.context.span_id:016x}" in told
    }
    assert [reason for reason in emitted.values() if reason] == ["capacity", "capacity"]
    assert {id: told[id].attributes.get(FALLBACK_REASON) for id in emitted} == emitted  # noqa: A001


def row(run: str, number: int = 1, **fields: Any) -> AttemptRow:
    given = {"role": "reviewer", "adapter": "one", "pool": "one:a", "started": 10.0, "status": "done"}
    return AttemptRow(run_id=run, number=number, conversation="talk", **{**given, **fields})


def test_nested_work_hangs_under_the_attempt_that_asked_for_it() -> None:
    group = Group("a", "review")
    rows = [
        row("a", 1, fan_out=group, status="failed", category="provider", ended=11.0),
        row("a", 2, fan_out=group, started=12.0, adapter="two", ended=20.0),
        row("b", 1, fan_out=group, parent_run="a", role="analyst", started=13.0, ended=14.0),
    ]
    asked = "invoke_agent parent > invoke_workflow review > invoke_agent reviewer > dispatch two"
    found = paths(spans_of(rows, until=30, provider=nobody))
    assert f"{asked} > invoke_agent analyst > dispatch one > invoke_agent analyst" in found


def test_what_still_runs_ends_now_and_is_no_error() -> None:
    told = spans_of([row("a", status="running")], until=25, provider=nobody)
    assert {record.ended for record in told} == {25_000_000_000}
    assert not any(record.error for record in told)


def lineage(n: int, **fields: str) -> Lineage:
    made = {"conversation": "c" * 16, "child": f"{n:016x}", "attempt": f"a{n:015x}", "call": f"b{n:015x}"}
    return Lineage(trace="f" * 32, **(made | {"under": "c" * 16} | fields))


def test_of_a_dead_owner_what_was_open_is_told_as_an_error_and_what_was_perhaps_unsent_as_it_was() -> None:
    owner = row("x").owner
    rows = [
        row("old", started=1.0, ended=2.0, trace=lineage(1), owner=owner),
        row("new", started=1.0, ended=9.0, trace=lineage(2), owner=owner),
        row("open", started=9.5, status="unknown", ended=60.0, trace=lineage(3, host="9" * 16), owner=owner),
        row("other", started=9.0, ended=9.4, trace=replace(lineage(4), trace="e" * 32), owner=owner),
    ]
    assert 9.5 - 2.0 > UNSENT_S > 9.5 - 9.0
    told = list(lost(rows, {rows[2].id}, nobody))
    by_child = {record.id: record for record in told}
    died = {record.id for record in told if record.attributes.get("error.type") == OWNER_DIED}
    assert died == {"c" * 16, f"{3:016x}", f"a{3:015x}", f"b{3:015x}"}
    assert set(by_child) - died == {f"{2:016x}", f"a{2:015x}", f"b{2:015x}"}
    assert all(record.attributes["custodes.recovered"] is True for record in told)
    assert by_child["c" * 16].parent == "9" * 16  # the host's own span, which is not ours to tell


def test_a_trace_that_has_not_known_its_call_is_told_with_one_that_is_made() -> None:
    bare = row("a", status="unknown", ended=11.0, trace=Lineage(trace="f" * 32, conversation="c" * 16))
    told = list(lost([bare], {bare.id}, nobody))
    assert [record.name for record in told] == [
        "invoke_agent parent",
        "invoke_agent reviewer",
        "dispatch one",
        "invoke_agent reviewer",
    ]
    assert len(paths(told)) == 4


@pytest.mark.anyio
async def test_the_command_prints_one_request_that_a_collector_takes(
    project: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = await reviewed(project)
    assert Settings(project).read().policy.enabled
    printed: list[str] = []
    monkeypatch.setattr("custodes.cli.cognition.write", printed.append)
    from custodes.cli.cognition import trace

    assert await trace("talk", project_dir=project, format="otlp-json") == 0
    (text,) = printed
    assert json.loads(text)["resourceSpans"]
    told = spans_of(rows, until=0, provider=nobody)
    assert {(s.id, s.name) for s in read_json(text.encode())} == {(s.id, s.name) for s in told}


def test_following_spans_is_refused_with_what_would_work(cos: Cos) -> None:
    answer = cos("cognition", "trace", "talk", "--follow", "--format", "otlp-json")
    assert answer.code == 2
    assert "--format json follows" in answer.err
