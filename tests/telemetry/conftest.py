"""A tracer on a provider of the test's own, and what it exported, held against the registry at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from custodes.telemetry import Tracer
from custodes.telemetry.bridge import Bridge
from support.genai import assert_conforms


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """Every span a test emits conforms to the registry (acceptance T10)."""
    exporter = InMemorySpanExporter()
    yield exporter
    assert_conforms(exporter.get_finished_spans())


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> Iterator[TracerProvider]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


@pytest.fixture
def tracer(provider: TracerProvider) -> Tracer:
    return Tracer(Bridge(provider.get_tracer("custodes")))
