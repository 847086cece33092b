"""Shared fixtures: both event loops, and a provider that holds every span of the suite to the conventions."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from support.genai import SpanWatch

# How long an example took says something of a busy machine, and nothing of the rule.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure() -> None:
    """A script starts background jobs with Ctrl-C ignored, and so every program of a test would be."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every ``@pytest.mark.anyio`` test runs on both loops."""
    backend: str = request.param
    return backend


@pytest.fixture(scope="session", autouse=True)
def span_watch() -> SpanWatch:
    """The suite runs in a host that traces: whatever is supervised in this process emits its spans."""
    watch = SpanWatch()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(watch)
    trace.set_tracer_provider(provider)
    return watch


@pytest.fixture(autouse=True)
def every_span_conforms_and_ends(span_watch: SpanWatch) -> Iterator[None]:
    """Acceptance T10, over every span that the whole suite emits; and none is left open by its test."""
    span_watch.clear()
    yield
    faults, unended = span_watch.faults, span_watch.unended
    assert not faults, faults
    assert not unended, f"spans that were never ended: {unended}"
