"""A program's own export: spans, metrics and logs of what runs inside a block, to the operator's collector.

A host that has providers of its own needs none of this. Inside the block nothing waits for a collector:
what is recorded is queued, and dropped where the queue is full. Leaving it flushes for at most
:data:`EXIT_S` seconds, whatever the collector does.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from custodes.telemetry import conventions as names
from custodes.telemetry.exporters import ExportError, Wanted, made, wanted
from custodes.telemetry.providers import Providers, current_providers, own

if TYPE_CHECKING:  # loaded only once something is exported
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

EXIT_S = 2.0
"""How long leaving the block may take for the sake of a collector, in seconds."""


@dataclass(slots=True)
class Export:
    """What became of the spans. ``lost`` counts those of failed exports; ``in_time`` is False where the end
    came before all was sent."""

    lost: int = 0
    in_time: bool = True
    _endings: list[Any] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.in_time and not self.lost


@contextmanager
def exporting(endpoint: str = "", environ: Mapping[str, str] = os.environ) -> Iterator[Export | None]:
    """Export what is supervised inside the block, under the span that ``TRACEPARENT`` names, if it does.

    Does nothing, and gives None, where nothing is asked for or the host has a provider already.

    :param endpoint: the base address of an OTLP/HTTP collector; "" leaves it to the ``OTEL_*`` variables.
    :param environ: decides what is asked for, and names the parent; what else the variables say (headers,
        timeouts, sampling) OpenTelemetry itself reads from this process's own.
    :raises ExportError: what is asked for cannot be done; nothing was started.
    """
    asked = wanted(environ, endpoint)
    if not asked or current_providers() is not None:
        yield None
        return
    export = Export()
    with ExitStack() as stack:
        providers, logs = _providers(asked, export)
        token = own.set(providers)
        stack.callback(own.reset, token)
        if logs is not None:
            from custodes.telemetry.logs import handled

            stack.enter_context(handled(logs))
        stack.enter_context(_under(environ))
        try:
            yield export
        finally:
            _end(export)


def _providers(asked: Wanted, export: Export) -> tuple[Providers, LoggerProvider | None]:
    # All exporters first: where one cannot be made, no thread has been started yet.
    spans, metrics, logs = made(asked, "traces"), made(asked, "metrics"), made(asked, "logs")
    tracer = meter = logger = None
    try:
        resource = _resource()
        if spans:
            export._endings.append(tracer := _tracer(spans, resource, export))
        if metrics:
            export._endings.append(meter := _meter(metrics, resource))
        if logs:
            export._endings.append(logger := _logger(logs, resource))
    except ValueError as error:  # a variable of the SDK's own, as OTEL_BSP_MAX_QUEUE_SIZE
        _end(export)
        said = " ".join(str(error).split())
        raise ExportError(f"OpenTelemetry does not take what its OTEL_* variables say: {said}") from None
    variables = {}
    if asked.endpoint:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": asked.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
    return Providers(tracer, meter, variables), logger


def _resource() -> Resource:
    from importlib.metadata import version

    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

    ours = Resource({SERVICE_NAME: names.SCOPE, SERVICE_VERSION: version("custodes")})
    return Resource.create().merge(ours).merge(OTELResourceDetector().detect())


def _tracer(exporters: Sequence[SpanExporter], resource: Resource, export: Export) -> TracerProvider:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(_counted(exporter, export)))
    return provider


def _meter(exporters: Sequence[Any], resource: Resource) -> MeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    readers = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
    return MeterProvider(readers, resource=resource, shutdown_on_exit=False)


def _logger(exporters: Sequence[Any], resource: Resource) -> LoggerProvider:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return provider


def _counted(exporter: SpanExporter, export: Export) -> SpanExporter:
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Counted(SpanExporter):
        """Notes what did not arrive."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = SpanExportResult.FAILURE
            try:
                result = exporter.export(spans)
            finally:
                if result is not SpanExportResult.SUCCESS:
                    export.lost += len(spans)
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return Counted()


@contextmanager
def _under(environ: Mapping[str, str]) -> Iterator[None]:
    """The span this program was started from is the parent, as OpenTelemetry puts it into the environment."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    from custodes.telemetry.context import attach

    carrier = {name.lower(): environ[name] for name in ("TRACEPARENT", "TRACESTATE") if environ.get(name)}
    with attach(TraceContextTextMapPropagator().extract(carrier)):
        yield


def _end(export: Export) -> None:
    """Flush and shut down, side by side, for as long as the bound allows; the rest is left to the exit.

    The SDK bounds neither: a forced flush waits for its exporter's own retries, and a shutdown for them too.
    """
    ends = [threading.Thread(target=each.shutdown, daemon=True) for each in export._endings]
    for thread in ends:
        thread.start()
    until = time.monotonic() + EXIT_S
    for thread in ends:
        thread.join(max(0.0, until - time.monotonic()))
    export.in_time = not any(thread.is_alive() for thread in ends)
