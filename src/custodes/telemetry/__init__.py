"""One tree for each fan-out: the names, the spans, and what a child needs to join them.

Importing it costs nothing: OpenTelemetry is loaded only where the host has configured a provider of its own.
"""

from custodes.telemetry.contents import Contents
from custodes.telemetry.context import attach, capture
from custodes.telemetry.envelope import envelope
from custodes.telemetry.export import Export, exporting
from custodes.telemetry.exporters import ExportError
from custodes.telemetry.lineage import Lineage
from custodes.telemetry.span_handle import SpanHandle
from custodes.telemetry.span_record import SpanRecord
from custodes.telemetry.tracer import NOTHING, Tracer, current_tracer

__all__ = [
    "NOTHING",
    "Contents",
    "Export",
    "ExportError",
    "Lineage",
    "SpanHandle",
    "SpanRecord",
    "Tracer",
    "attach",
    "capture",
    "current_tracer",
    "envelope",
    "exporting",
]
