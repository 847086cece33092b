"""What the spans of a tree come to as numbers, in the SDK's own reader, against the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from custodes.telemetry import Tracer
from custodes.telemetry.bridge import Bridge
from custodes.telemetry.providers import Providers
from support.genai import REGISTRY


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture(params=["with spans", "metrics alone"])
def metered(reader: InMemoryMetricReader, request: pytest.FixtureRequest) -> Iterator[Tracer]:
    meter = MeterProvider([reader], shutdown_on_exit=False)
    tracer = TracerProvider(shutdown_on_exit=False) if request.param == "with spans" else None
    yield Tracer(Bridge.of(Providers(tracer, meter)))
    meter.shutdown()


def work(tracer: Tracer) -> None:
    """A fan-out of one child: its first pool is cooling, its second is the probe that covers it."""
    with tracer.conversation("ours") as root, tracer.fan_out(root, "review") as fan:
        with tracer.child(fan, "reviewer", "run-1") as child:
            tracer.blocked(
                child,
                adapter="one",
                pool="one:a",
                category="capacity",
                health_state="cooling_down",
                retry_after_s=42,
            )
            with tracer.attempt(
                child,
                number=1,
                adapter="two",
                pool="two:b",
                health_state="half_open",
                probe=True,
                fallback_reason="capacity",
            ) as attempt:
                with tracer.call(
                    attempt, role="reviewer", provider="vendor", adapter="two", model="m", effort=None
                ) as call:
                    call.set(input_tokens=11, output_tokens=5, served_model="m-1", tool_calls=2)
        fan.cancelled(0.5)
        fan.set(fan_out_size=1, spent_tokens=16, spent_usd=0.25)


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: list(metric.data.data_points)
        for group in data.resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    }


def test_each_end_is_counted_by_what_has_few_values(metered: Tracer, reader: InMemoryMetricReader) -> None:
    work(metered)
    found = points(reader)
    two = {"custodes.adapter": "two", "custodes.pool": "two:b"}
    one = {"custodes.adapter": "one", "custodes.pool": "one:a"}
    call = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "vendor",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-1",
    }
    expected: dict[str, list[tuple[float, dict[str, str]]]] = {
        "custodes.attempts": [(1, two)],
        "custodes.probes": [(1, two)],
        "custodes.fallbacks": [(1, two | {"custodes.fallback.reason": "capacity"})],
        "custodes.refusals": [(1, one | {"error.type": "capacity"})],
        "custodes.pool.state": [(2, one), (1, two)],
        "custodes.pool.cooldown": [(42, one), (0, two)],
        "custodes.budget.spent.tokens": [(16, {"gen_ai.workflow.name": "review"})],
        "custodes.budget.spent.usd": [(0.25, {"gen_ai.workflow.name": "review"})],
        "gen_ai.client.inference.usage.input_tokens": [(11, call | {"gen_ai.token.modality": "text"})],
        "gen_ai.client.inference.usage.output_tokens": [(5, call | {"gen_ai.token.modality": "text"})],
        "custodes.fan_out.size": [(1, {"gen_ai.workflow.name": "review"})],
        "gen_ai.invoke_agent.tool_calls": [(2, {"gen_ai.agent.name": "reviewer"})],
        "custodes.cancel.duration": [(0.5, {})],
    }
    for name, told in expected.items():
        values = [(getattr(p, "value", getattr(p, "sum", None)), dict(p.attributes)) for p in found.pop(name)]
        assert sorted(values, key=str) == sorted(told, key=str), name
    durations = {name: dict(point.attributes) for name, (point,) in found.items()}
    assert durations == {
        "gen_ai.invoke_agent.duration": {"gen_ai.agent.name": "reviewer"},
        "gen_ai.invoke_workflow.duration": {"gen_ai.workflow.name": "review"},
        "gen_ai.client.inference.duration": call,
    }


def test_an_error_is_told_by_its_type(metered: Tracer, reader: InMemoryMetricReader) -> None:
    metered.child(None, "reviewer", "run-1").end(error_type="timeout")
    (point,) = points(reader)["gen_ai.invoke_agent.duration"]
    assert dict(point.attributes) == {"gen_ai.agent.name": "reviewer", "error.type": "timeout"}


def test_every_instrument_of_the_conventions_is_as_they_say(
    metered: Tracer, reader: InMemoryMetricReader
) -> None:
    work(metered)
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [m for g in data.resource_metrics for scope in g.scope_metrics for m in scope.metrics]
    registered = [metric for metric in metrics if metric.name.startswith("gen_ai.")]
    assert registered
    for metric in registered:
        rule = REGISTRY["metrics"][metric.name]
        assert metric.unit == rule["unit"]
        assert type(metric.data).__name__ == {"histogram": "Histogram", "counter": "Sum"}[rule["instrument"]]
        for point in metric.data.data_points:
            given = set(dict(point.attributes or {}))
            assert given <= set(rule["attributes"]), metric.name
            required = {name for name, each in rule["attributes"].items() if each["level"] == "required"}
            assert required <= given, metric.name


def test_metrics_alone_give_no_trace_to_anybody(reader: InMemoryMetricReader) -> None:
    tracer = Tracer(Bridge.of(Providers(None, MeterProvider([reader], shutdown_on_exit=False))))
    with tracer.conversation("ours") as root:
        assert root.traceparent() == {}
        assert root.lineage() is None
