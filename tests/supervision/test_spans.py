"""One tree for a fan-out, to the provider that the host configured: in a process of its own, as a host is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from custodes.policy.roles import ROLE_DEFAULTS
from support import scripted

HOST = """\
import json, sys
from pathlib import Path

import anyio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support import scripted
from support.genai import assert_conforms

import custodes
from custodes import Budget, Work

project, backend = Path(sys.argv[1]), sys.argv[2]
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
script = scripted.SCRIPTS[str(project)] = scripted.Script()


async def hang(request, progress):
    hanging.set()
    await anyio.sleep_forever()


async def main():
    global hanging
    hanging = anyio.Event()
    async with custodes.Supervision(project) as supervision, supervision.conversation("talk") as parent:
        script.acts.append(scripted.limit(retry_after_s=60))
        async with parent.fan_out(name="review", budget=Budget(tokens=200_000)) as fan:
            fan.start(Work(role="reviewer", prompt="canary-prompt"))
            fan.start(Work(role="analyst", prompt="canary-prompt", model="small"))
        assert [outcome.status for outcome in fan.outcomes] == ["done", "done"], fan.outcomes
        script.acts.append(hang)
        async with parent.fan_out(name="cancelled") as fan:
            child = fan.start(Work(role="observer", prompt="canary-prompt", model="small"))
            await hanging.wait()
            await child.cancel()
    return [request.environment for request in script.requests]


environments = anyio.run(main, backend=backend)
spans = exporter.get_finished_spans()
assert_conforms(spans)
print(json.dumps({
    "environments": environments,
    "spans": [
        {
            "id": format(span.context.span_id, "016x"),
            "trace": format(span.context.trace_id, "032x"),
            "parent": format(span.parent.span_id, "016x") if span.parent else None,
            "name": span.name,
            "kind": span.kind.name,
            "status": span.status.status_code.name,
            "attributes": dict(span.attributes),
        }
        for span in spans
    ],
}))
"""


@pytest.fixture(params=["asyncio", "trio"])
def told(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    scripted.install(tmp_path, "one", "two")
    scripted.configure(tmp_path, fallback_policy="next_eligible", max_parallel=1)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TRACEPARENT": "stale"}
    host = subprocess.run(
        [sys.executable, "-c", HOST, str(tmp_path), request.param],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )
    assert host.returncode == 0, host.stderr
    told: dict[str, Any] = json.loads(host.stdout)
    return told


def test_every_fan_out_hangs_in_one_tree_down_to_the_call(told: dict[str, Any]) -> None:
    spans = {span["id"]: span for span in told["spans"]}
    assert len({span["trace"] for span in spans.values()}) == 1

    def path(span: dict[str, Any]) -> str:
        return f"{path(spans[span['parent']])} > {span['name']}" if span["parent"] else span["name"]

    root = "invoke_agent parent"
    review = f"{root} > invoke_workflow review"
    reviewer, analyst = f"{review} > invoke_agent reviewer", f"{review} > invoke_agent analyst"
    cancelled = f"{root} > invoke_workflow cancelled"
    observer = f"{cancelled} > invoke_agent observer"
    assert sorted(path(span) for span in spans.values()) == sorted(
        [
            root,
            review,
            reviewer,
            f"{reviewer} > dispatch one",
            f"{reviewer} > dispatch one > invoke_agent reviewer",
            f"{reviewer} > dispatch two",
            f"{reviewer} > dispatch two > invoke_agent reviewer",
            analyst,
            f"{analyst} > dispatch one",
            f"{analyst} > dispatch one > invoke_agent analyst",
            cancelled,
            observer,
            f"{observer} > dispatch one",
            f"{observer} > dispatch one > invoke_agent observer",
        ]
    )
    sizes = {
        span["name"]: span["attributes"]["custodes.fan_out.size"]
        for span in spans.values()
        if "custodes.fan_out.size" in span["attributes"]
    }
    assert sizes == {"invoke_workflow review": 2, "invoke_workflow cancelled": 1}
    (fan_out,) = (span["attributes"] for span in spans.values() if span["name"] == "invoke_workflow review")
    assert fan_out["custodes.budget.tokens"] == 200_000
    # Nobody reported what was used: each of the two is settled at its role's default.
    assert fan_out["custodes.budget.spent.tokens"] == sum(
        ROLE_DEFAULTS[role].input_tokens + ROLE_DEFAULTS[role].output_tokens
        for role in ("reviewer", "analyst")
    )
    assert {span["kind"] for span in spans.values() if "gen_ai.provider.name" in span["attributes"]} == {
        "CLIENT"
    }


def test_a_covered_failure_marks_its_attempt_and_none_above_it(told: dict[str, Any]) -> None:
    errors = [
        (span["name"], span["attributes"]["error.type"])
        for span in told["spans"]
        if span["status"] == "ERROR"
    ]
    assert sorted(errors) == [
        ("dispatch one", "cancelled"),
        ("dispatch one", "capacity"),
        ("invoke_agent observer", "cancelled"),
        ("invoke_agent observer", "cancelled"),
        ("invoke_agent reviewer", "capacity"),
    ]
    fallback = [span for span in told["spans"] if span["name"] == "dispatch two"]
    assert fallback[0]["attributes"]["custodes.fallback.reason"] == "capacity"


def test_a_childs_environment_carries_its_own_parent_and_its_run(told: dict[str, Any]) -> None:
    calls = {span["id"] for span in told["spans"] if span["kind"] == "CLIENT"}
    parents = [environment["TRACEPARENT"].split("-") for environment in told["environments"]]
    assert {parent[2] for parent in parents} == calls
    assert all(int(parent[3], 16) & 1 for parent in parents)  # sampled
    assert all(environment["CUSTODES_RUN"] for environment in told["environments"])


def test_nothing_of_the_work_itself_is_exported(told: dict[str, Any]) -> None:
    assert "canary" not in json.dumps(told["spans"])
