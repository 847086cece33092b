"""Which providers are used: ours where this program exports by itself, else the host's.

Ours are never made the global ones: they are for what runs inside :func:`~custodes.telemetry.exporting`.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded only where somebody has configured telemetry
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


@dataclass(frozen=True, slots=True)
class Providers:
    """None where the signal is not configured. ``endpoint`` are the OTLP variables that lead a runtime to
    the same collector; empty where its own environment already does."""

    tracer: TracerProvider | None = None
    meter: MeterProvider | None = None
    endpoint: dict[str, str] = field(default_factory=dict)


own: ContextVar[Providers | None] = ContextVar("custodes_providers", default=None)


def current_providers() -> Providers | None:
    """None where nothing is configured: a look at a context variable and into ``sys.modules`` is the cost."""
    if (ours := own.get()) is not None:
        return ours
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    tracer = trace.get_tracer_provider()
    unset = isinstance(tracer, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    meter = _host_meter()
    return None if unset and meter is None else Providers(None if unset else tracer, meter)


def _host_meter() -> MeterProvider | None:
    if "opentelemetry.metrics" not in sys.modules:
        return None
    from opentelemetry import metrics

    provider = metrics.get_meter_provider()
    # The API names its stand-in for "not set yet" by a private class alone.
    unset = (
        isinstance(provider, metrics.NoOpMeterProvider) or type(provider).__name__ == "_ProxyMeterProvider"
    )
    return None if unset else provider
