"""The tree of a fan-out as it comes out of everything, and what the rows know of it."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import format_span_id, format_trace_id

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, Failure, ProgressSink
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.work import Work
from custodes.telemetry.otlp import write_json
from custodes.telemetry.span_record import Source, SpanRecord
from custodes.telemetry.values import Value
from support import scripted
from support.genai import SpanWatch, paths

pytestmark = pytest.mark.anyio

ROOT = "invoke_agent parent"
FAN = f"{ROOT} > invoke_workflow review"
RELAYED = scripted.ADAPTER_YAML + "spans: {{turn: invoke_agent, llm: chat}}\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scripted.Script:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return scripted.install(tmp_path, "one", "two", adapter_yaml=RELAYED)


def named(watch: SpanWatch, name: str) -> list[ReadableSpan]:
    return [span for span in watch.ended if span.name == name]


def own_span(id: int, parent: int, name: str, attributes: dict[str, Value]) -> SpanRecord:  # noqa: A002
    """Of a runtime, as it sends it."""
    return SpanRecord(
        trace="c" * 32,
        id=f"{id:016x}",
        parent=f"{parent:016x}" if parent else "",
        name=name,
        begun=1,
        ended=2,
        attributes={**attributes},
        source=Source("cli"),
    )


async def test_a_candidate_that_lets_nothing_in_has_a_span_beside_the_one_that_covers_it(
    tmp_path: Path, script: scripted.Script, span_watch: SpanWatch
) -> None:
    scripted.configure(tmp_path, fallback_policy="next_eligible")
    script.acts.append(scripted.limit(retry_after_s=60))
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(Work(role="analyst", prompt="first"))
        span_watch.clear()
        async with parent.fan_out(name="review") as fan:
            fan.start(Work(role="reviewer", prompt="second"))
    assert fan.outcomes[0].status == "done"
    child = f"{FAN} > invoke_agent reviewer"
    assert {path for path in paths(span_watch.ended) if "review" in path} == {
        FAN,
        child,
        f"{child} > dispatch one",
        f"{child} > dispatch two",
        f"{child} > dispatch two > invoke_agent reviewer",
    }
    (blocked,) = named(span_watch, "dispatch one")
    assert blocked.attributes is not None
    assert dict(blocked.attributes) == {
        "custodes.adapter": "one",
        "custodes.pool": "one:large",
        "custodes.health.state": "cooling_down",
        "custodes.error.category": "capacity",
        "custodes.outcome": "not_started",
        "custodes.retry_after_s": 60,
        "error.type": "capacity",
    }


async def test_a_child_that_is_refused_has_a_span_and_its_row_knows_it(
    tmp_path: Path, script: scripted.Script, span_watch: SpanWatch
) -> None:
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(name="review") as fan:
            fan.start(Work(role="reviewer", prompt="look", model="unheard-of"))
    (span,) = named(span_watch, "invoke_agent reviewer")
    assert span.attributes is not None
    assert span.attributes["error.type"] == fan.outcomes[0].refusal.category  # type: ignore[union-attr]  # it is one
    async with RecordFile(tmp_path) as file:
        (row,) = await file.conversation("c")
    assert row.trace is not None
    assert span.context is not None
    assert row.trace.child == format_span_id(span.context.span_id)


async def test_a_row_names_every_span_of_its_line(
    tmp_path: Path, script: scripted.Script, span_watch: SpanWatch
) -> None:
    script.acts.append(scripted.begun())
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(name="review") as fan:
            fan.start(Work(role="reviewer", prompt="look"))
    async with RecordFile(tmp_path) as file:
        (row,) = await file.conversation("c")
    assert row.fan_out is not None
    assert (row.fan_out.name, row.fan_out.id) == ("review", fan.outcomes[0].run_id)
    ids = {f"{span.kind.name} {span.name}": span.context for span in span_watch.ended}
    trace = row.trace
    assert trace is not None
    told = {
        f"INTERNAL {ROOT}": trace.conversation,
        "INTERNAL invoke_workflow review": trace.fan_out,
        "INTERNAL invoke_agent reviewer": trace.child,
        "INTERNAL dispatch one": trace.attempt,
        "CLIENT invoke_agent reviewer": trace.call,
    }
    assert told == {name: format_span_id(context.span_id) for name, context in ids.items() if context}
    assert trace.under == trace.fan_out
    assert trace.host == ""
    assert {trace.trace} == {format_trace_id(context.trace_id) for context in ids.values() if context}


async def test_three_roles_with_two_attempts_each_are_one_tree_across_threads(
    tmp_path: Path, script: scripted.Script, span_watch: SpanWatch
) -> None:
    """Acceptance T1; what asks from another thread, and the host's own spans, find their place too."""
    scripted.configure(tmp_path, fallback_policy="next_eligible", max_parallel=3)
    overloaded = dict.fromkeys(("reviewer", "analyst", "observer"), False)

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        first, overloaded[request.role] = not overloaded[request.role], True
        if first:
            return DispatchResult(failure=Failure(category="provider", reason="down", retryable=True))
        return await scripted.answer(request, progress)

    script.acts.extend([act] * 6)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        async with parent.fan_out(name="review") as fan:

            def ask(role: str) -> None:
                anyio.from_thread.run_sync(fan.start, Work(role=role, prompt="look"))

            async with anyio.create_task_group() as group:
                for role in overloaded:
                    group.start_soon(anyio.to_thread.run_sync, ask, role)
    assert [outcome.status for outcome in fan.outcomes] == ["done"] * 3
    found = paths(span_watch.ended)
    expected = [ROOT, FAN]
    for role in overloaded:
        child = f"{FAN} > invoke_agent {role}"
        expected.append(child)
        for adapter in ("one", "two"):
            expected += [
                f"{child} > dispatch {adapter}",
                f"{child} > dispatch {adapter} > invoke_agent {role}",
            ]
    assert found == sorted(expected)
    assert len({span.context.trace_id for span in span_watch.ended if span.context}) == 1


@pytest.mark.parametrize("relay", [True, False])
async def test_a_runtimes_own_spans_hang_under_its_call_unless_the_policy_says_no(
    tmp_path: Path, script: scripted.Script, span_watch: SpanWatch, relay: bool
) -> None:
    scripted.configure(tmp_path, telemetry={"relay": relay})
    turn: dict[str, Value] = {"gen_ai.agent.name": "cli", "prompt": "canary"}
    llm: dict[str, Value] = {"gen_ai.request.model": "m", "gen_ai.input.messages": "canary"}
    sent = [own_span(2, 1, "llm", llm), own_span(1, 0, "turn", turn), own_span(3, 0, "noise", {})]

    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        url = request.environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        assert (url is not None) is relay
        if url is not None:
            async with httpx2.AsyncClient() as client:
                headers = {"content-type": "application/json"}
                await client.post(f"{url}/v1/traces", content=write_json(sent), headers=headers)
        return await scripted.answer(request, progress)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(Work(role="reviewer", prompt="look"))
    call = f"{ROOT} > invoke_agent reviewer > dispatch one > invoke_agent reviewer"
    own = [f"{call} > invoke_agent cli", f"{call} > invoke_agent cli > chat m"] if relay else []
    assert [path for path in paths(span_watch.ended) if path.startswith(f"{call} > ")] == own
    (calling,) = [span for span in span_watch.ended if span.kind.name == "CLIENT" and span.name != "chat m"]
    assert calling.attributes is not None
    assert calling.attributes.get("custodes.relay.spans") == (2 if relay else None)
    assert calling.attributes.get("custodes.relay.left_out") == (1 if relay else None)
    assert "canary" not in "".join(span.to_json() for span in span_watch.ended)


async def test_an_adapter_that_raises_is_logged_by_where_and_never_by_what_it_said(
    tmp_path: Path, script: scripted.Script, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(request: DispatchRequest, progress: ProgressSink) -> DispatchResult:
        raise ValueError(request.prompt)

    script.acts.append(act)
    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        await parent.dispatch(Work(role="reviewer", prompt="canary"))
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "adapter one raised ValueError" in record.getMessage()
    assert __file__ in record.getMessage()
    assert "canary" not in caplog.text
