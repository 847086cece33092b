"""Every span that is begun and ended, as the SDK of a host's provider sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from custodes.telemetry.bridge import Bridge
from custodes.telemetry.tracer import Tracer


@dataclass(eq=False)
class SpanJournal(SpanProcessor):
    begun: list[Span] = field(default_factory=list)
    ended: list[ReadableSpan] = field(default_factory=list)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.begun.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def tracer(self) -> Tracer:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self)
        return Tracer(Bridge(provider.get_tracer("simulated")))
