"""A collector on loopback that keeps what it is sent, decoded and raw; it may also keep silent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class Seen:
    """A span as it arrived. ``status`` is 2 for an error; ``kind`` 3 for a client."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    status: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    scope: str


@dataclass
class Sink:
    """``silent``: requests are read and never answered while the sink is open."""

    silent: bool = False
    url: str = ""
    raw: list[bytes] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    logs: list[ExportLogsServiceRequest] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    def take(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        if body.startswith(b"{"):  # OTLP's JSON, which is kept as it came
            return
        if path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))
        elif path == "/v1/logs":
            self.logs.append(ExportLogsServiceRequest.FromString(body))

    @property
    def spans(self) -> list[Seen]:
        return [
            Seen(
                trace=span.trace_id.hex(),
                id=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                name=span.name,
                kind=span.kind,
                status=span.status.code,
                attributes=_values(span.attributes),
                resource=_values(group.resource.attributes),
                scope=scope.scope.name,
            )
            for request in self.traces
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    @property
    def metric_names(self) -> set[str]:
        return {
            metric.name
            for request in self.metrics
            for group in request.resource_metrics
            for scope in group.scope_metrics
            for metric in scope.metrics
        }

    @property
    def log_records(self) -> list[Any]:
        return [
            record
            for request in self.logs
            for group in request.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


def tree(spans: list[Seen]) -> list[str]:
    """Every span as the path of names from its root, sorted.

    :raises KeyError: a span's parent is not among them: it is an orphan.
    """
    by_id = {span.id: span for span in spans}

    def path(span: Seen) -> str:
        return f"{path(by_id[span.parent])} > {span.name}" if span.parent else span.name

    return sorted(path(span) for span in spans)


@contextmanager
def sink(*, silent: bool = False) -> Iterator[Sink]:
    kept = Sink(silent=silent)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _chunks(self) -> Iterator[bytes]:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                yield self.rfile.read(int(self.headers.get("content-length", 0)))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

        def do_POST(self) -> None:
            body = b"".join(self._chunks())
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            kept.asked.set()
            if kept.silent:
                kept.closing.wait()
                return
            kept.take(self.path, body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield kept
    finally:
        kept.closing.set()
        server.shutdown()
        serving.join()
        server.server_close()


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
