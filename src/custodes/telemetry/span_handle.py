"""A handle on one span of the tree, or on nothing with the same face.

A span is ERROR if and only if it carries ``error.type``. A handled failure marks its own span and none
around it. Of an exception only the type's name is kept: a message may hold a secret.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from msgspec.structs import replace

from custodes.telemetry import conventions as names
from custodes.telemetry import shapes
from custodes.telemetry.contents import Contents
from custodes.telemetry.lineage import Level, Lineage
from custodes.telemetry.shapes import Known
from custodes.telemetry.values import Value, clean, text

if TYPE_CHECKING:  # loaded only where somebody has configured a provider
    from opentelemetry.trace import Span

    from custodes.telemetry.bridge import Bridge
    from custodes.telemetry.graft import Graft


class SpanHandle:
    """One span, or nothing with the same face. Every call on it is safe at any time, also after its end.

    As a context manager it ends with its block: well, or as ``end_for`` what the block raised, which
    goes on. It is not made the current span; ``attach(span.context)`` does that where a host's own
    instrumentation should nest under it.
    """

    __slots__ = (
        "_above",
        "_attributes",
        "_begun",
        "_bridge",
        "_ended",
        "_level",
        "_lineage",
        "_span",
        "context",
    )

    def __init__(
        self,
        bridge: Bridge | None = None,
        span: Span | None = None,
        context: object = None,
        *,
        level: Level = "conversation",
        above: SpanHandle | None = None,
        attributes: dict[str, Value] | None = None,
    ) -> None:
        self._bridge = bridge
        self._span = span
        self._level: Level = level
        self._above = above
        self._ended = False
        self._lineage: Lineage | None = None
        metered = bridge is not None and bridge.meters is not None
        self._attributes = attributes if metered else None
        self._begun = time.monotonic() if metered else 0.0
        self.context: object = context
        """Opaque, for ``attach``; None where nothing is traced."""

    def set(self, **said: Unpack[Known]) -> None:
        """Record what has become known (:func:`~custodes.telemetry.shapes.known`); None changes nothing."""
        if self._span is None or self._ended:
            return
        known = clean(shapes.known(**said))
        self._span.set_attributes(known)
        if self._attributes is not None:
            self._attributes |= known

    def say(self, contents: Contents, *, prompt: str = "", output: str = "") -> None:
        """Record what the operator asked for of a call's prompt and answer, redacted; by default nothing."""
        if (
            self._span is not None
            and not self._ended
            and (said := contents.said(prompt=prompt, output=output))
        ):
            self._span.set_attributes(said)

    def cancelled(self, seconds: float) -> None:
        """A child below was cancelled; all it had started was proven gone after so many seconds."""
        if self._bridge is not None and self._bridge.meters is not None:
            self._bridge.meters.cancelled(seconds)

    def end(self, *, error_type: str | None = None) -> None:
        """End the span; the first end wins and every later one does nothing.

        :param error_type: a name of few values (a category, ``cancelled``, an exception's type), never a
            message. With it the span is ERROR; without it the status stays unset.
        """
        if self._bridge is None or self._span is None or self._ended:
            return
        self._ended = True
        named = None if error_type is None else text(error_type)
        self._bridge.end(self._span, named)
        if self._bridge.meters is not None and self._attributes is not None:
            if named is not None:
                self._attributes[names.ERROR_TYPE] = named
            self._bridge.meters.ended(self._level, time.monotonic() - self._begun, self._attributes)

    def end_for(self, raised: BaseException | type[BaseException] | None) -> None:
        """End the span for what its block raised, or well where that is None."""
        self.end(error_type=None if raised is None else error_type_of(raised))

    def traceparent(self) -> dict[str, str]:
        """``TRACEPARENT`` and ``TRACESTATE`` for a child process, sampling flag kept; empty without a trace.

        Both are always given together (an empty variable counts as unset), so that a stale pair in our
        own environment is replaced whole.
        """
        return {} if self._bridge is None else self._bridge.environment(self.context)

    def lineage(self) -> Lineage | None:
        """The ids of this span and of those it hangs under, for a durable record; None without a trace."""
        if self._lineage is None and self._bridge is not None and self._span is not None:
            self._lineage = self._found(self._bridge, self._span)
        return self._lineage

    def _found(self, bridge: Bridge, span: Span) -> Lineage | None:
        own: dict[str, str] = {self._level: bridge.span_id(span)}
        above = self._above
        if above is None or above._span is None:
            trace = bridge.trace(span)
            return Lineage(**trace, host=bridge.parent_id(span), **own) if trace else None
        if (base := above.lineage()) is None:
            return None
        if self._level == "child":
            own["under"] = bridge.span_id(above._span)
            if above._level in ("attempt", "call"):
                # Above a child that another child's attempt asked for, only the root is ours to name.
                own |= {"fan_out": "", "attempt": "", "call": ""}
        return replace(base, **own)

    def relayed(
        self, wanted: Mapping[str, str], provider: str, contents: Contents
    ) -> AbstractAsyncContextManager[dict[str, str]]:
        """Hang a runtime's own spans under this one, as they come, while the block runs.

        :param wanted: by name, those that are, with what each is (:class:`~custodes.telemetry.graft.Graft`).
        :returns: the variables that lead the runtime here; empty where nothing of the trace is exported.
        """
        lineage = self.lineage() if wanted else None
        if self._bridge is None or self._span is None or lineage is None:
            return nullcontext({})
        if not lineage.sampled or not self._bridge.takes_records:
            return nullcontext({})
        from custodes.telemetry.graft import Graft

        under = self._bridge.span_id(self._span)
        graft = Graft(lineage.trace, under, wanted, provider, contents.attributes)
        return self._relaying(graft, self._bridge)

    @asynccontextmanager
    async def _relaying(self, graft: Graft, bridge: Bridge) -> AsyncIterator[dict[str, str]]:
        from custodes.telemetry.relay import Relay

        relay = Relay(graft, bridge.emit)
        if not await relay.open():
            yield {}
            return
        try:
            async with relay.serving():
                yield {
                    "OTEL_EXPORTER_OTLP_ENDPOINT": relay.url,
                    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{relay.url}/v1/traces",
                    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                }
        finally:
            self.set(relayed_spans=graft.passed_on, left_out_spans=graft.left_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_for(error)


def begin(bridge: Bridge, above: SpanHandle | None, shape: shapes.Shape) -> SpanHandle:
    """A span of this shape, begun now. Without one above it, the host's current span is its parent."""
    known = clean(shape.attributes)
    context = None if above is None else above.context
    span, within = bridge.start(shape.name, context, known, client=shape.level == "call")
    return SpanHandle(bridge, span, within, level=shape.level, above=above, attributes=known)


def error_type_of(raised: BaseException | type[BaseException]) -> str:
    """``error.type`` for something raised: the type's name, or ``cancelled``.

    What is no ``Exception`` ends work from outside: a cancellation of either loop, Ctrl-C, a closed
    generator. A group stands for its leaves: cancellations beside a failure are its consequence, and
    failures of one type are named for it.
    """
    if isinstance(raised, BaseExceptionGroup):
        leaves = {error_type_of(leaf) for leaf in raised.exceptions}
        causes = (leaves - {names.CANCELLED}) or leaves
        return causes.pop() if len(causes) == 1 else "ExceptionGroup"
    kind = raised if isinstance(raised, type) else type(raised)
    return kind.__qualname__ if issubclass(kind, Exception) else names.CANCELLED
