"""The spans of one tree: conversation -> fan-out -> child -> attempt -> runtime call.

Parents are explicit handles, not the ambient context: an actor, a thread and a mailbox task each run in
some other context than the work they do. Only the root looks at the ambient context, so that the tree
hangs under whatever span the host has open.

A span is ERROR if and only if it carries ``error.type``. A handled failure marks its own span and none
around it. Of an exception only the type's name is kept: a message may hold a secret.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from custodes.telemetry import conventions as names
from custodes.telemetry.lineage import Level, Lineage
from custodes.telemetry.providers import current_providers
from custodes.telemetry.values import Value, clean, text

if TYPE_CHECKING:  # loaded only where the host has configured a provider
    from opentelemetry.trace import Span

    from custodes.telemetry.bridge import Bridge


class Limits(Protocol):
    """What a fan-out may spend: any budget with these. None is no limit."""

    @property
    def children(self) -> int | None: ...

    @property
    def wall_seconds(self) -> float | None: ...

    @property
    def tokens(self) -> int | None: ...

    @property
    def usd(self) -> float | None: ...

    @property
    def depth(self) -> int | None: ...


class SpanHandle:
    """One span, or nothing with the same face. Every call on it is safe at any time, also after its end.

    As a context manager it ends with its block: well, or as ``end_for`` what the block raised, which
    goes on. It is not made the current span; ``attach(span.context)`` does that where a host's own
    instrumentation should nest under it.
    """

    __slots__ = ("_above", "_attributes", "_begun", "_bridge", "_ended", "_level", "_span", "context")

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
        metered = bridge is not None and bridge.meters is not None
        self._attributes = attributes if metered else None
        self._begun = time.monotonic() if metered else 0.0
        self.context = context
        """Opaque, for ``attach``; None where nothing is traced."""

    def set(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_input_tokens: int | None = None,
        cost_usd: float | None = None,
        native_conversation: str | None = None,
        served_model: str | None = None,
        category: str | None = None,
        outcome: str | None = None,
        retry_after_s: int | None = None,
        fan_out_size: int | None = None,
        spent_tokens: int | None = None,
        spent_usd: float | None = None,
        tool_calls: int | None = None,
        relayed_spans: int | None = None,
        left_out_spans: int | None = None,
    ) -> None:
        """Record what has become known; None changes nothing.

        :param native_conversation: the runtime's own session id, as it stated it; for its call's span.
        :param served_model: the model that answered, where the runtime names it.
        :param category: the normalized failure's category; the span is no error by that alone.
        :param outcome: ``known_failed`` or ``unknown``, or how a child ended.
        :param spent_tokens: of the whole fan-out's budget, in and out together; ``spent_usd`` likewise.
        """
        if self._span is None or self._ended:
            return
        known = clean(
            {
                names.INPUT_TOKENS: input_tokens,
                names.OUTPUT_TOKENS: output_tokens,
                names.CACHE_READ_TOKENS: cached_input_tokens,
                names.COST_USD: cost_usd,
                names.CONVERSATION_ID: native_conversation,
                names.RESPONSE_MODEL: served_model,
                names.CATEGORY: category,
                names.OUTCOME: outcome,
                names.RETRY_AFTER_S: retry_after_s,
                names.FAN_OUT_SIZE: fan_out_size,
                names.BUDGET_SPENT_TOKENS: spent_tokens,
                names.BUDGET_SPENT_USD: spent_usd,
                names.TOOL_USES: tool_calls,
                names.RELAYED_SPANS: relayed_spans,
                names.RELAY_LEFT_OUT: left_out_spans,
            }
        )
        self._span.set_attributes(known)
        if self._attributes is not None:
            self._attributes |= known

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
        if self._bridge is None or self._span is None:
            return None
        found: dict[str, str] = {}
        nested = False
        handle: SpanHandle = self
        while handle._span is not None:
            above = handle._above
            # Above a child that another child's attempt asked for, only the root is ours to name.
            if not nested or above is None:
                found.setdefault(handle._level, self._bridge.span_id(handle._span))
            if above is None or above._span is None:
                found["host"] = self._bridge.parent_id(handle._span)
                break
            if handle._level == "child":
                found.setdefault("under", self._bridge.span_id(above._span))
                nested = nested or above._level in ("attempt", "call")
            handle = above
        trace = self._bridge.trace(self._span)
        return Lineage(**trace, **found) if trace else None

    @asynccontextmanager
    async def relayed(self, wanted: Mapping[str, str], provider: str) -> AsyncIterator[dict[str, str]]:
        """Hang a runtime's own spans under this one, as they come, while the block runs.

        :param wanted: by name, those that are, with what each is (:class:`~custodes.telemetry.graft.Graft`).
        :returns: the variables that lead the runtime here; empty where nothing of the trace is exported.
        """
        lineage = self.lineage() if wanted else None
        if self._bridge is None or self._span is None or lineage is None or not lineage.sampled:
            yield {}
            return
        from custodes.telemetry.graft import Graft
        from custodes.telemetry.relay import Relay

        graft = Graft(lineage.trace, self._bridge.span_id(self._span), wanted, provider)
        relay = Relay(graft, self._bridge.emit)
        async with relay.serving():
            yield {
                "OTEL_EXPORTER_OTLP_ENDPOINT": relay.url,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            }
        self.set(relayed_spans=graft.passed_on, left_out_spans=graft.left_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_for(error)


class Tracer:
    """Begins the spans of the tree. Without a bridge each call is a branch that returns the same nothing."""

    __slots__ = ("_bridge", "endpoint")

    def __init__(self, bridge: Bridge | None = None, *, endpoint: Mapping[str, str] | None = None) -> None:
        self._bridge = bridge
        self.endpoint = dict(endpoint or {})
        """The OTLP variables that lead a runtime to the same collector; empty where its environment does."""

    def conversation(self, conversation_id: str) -> SpanHandle:
        """The root. Its parent is the host's current span, if it has one open.

        :param conversation_id: the host's; an empty one is left out, since none is ever invented.
        """
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        return _agent(
            bridge, None, names.PARENT, {names.CONVERSATION_ID: conversation_id or None}, level="conversation"
        )

    def fan_out(self, parent: SpanHandle | None, name: str, budget: Limits | None = None) -> SpanHandle:
        """Children that were asked for together. ``name`` is one of few; their number is set at the end."""
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        attributes: dict[str, Value | None] = {
            names.OPERATION_NAME: names.INVOKE_WORKFLOW,
            names.WORKFLOW_NAME: name,
            names.BUDGET_CHILDREN: None if budget is None else budget.children,
            names.BUDGET_WALL_SECONDS: None if budget is None else budget.wall_seconds,
            names.BUDGET_TOKENS: None if budget is None else budget.tokens,
            names.BUDGET_USD: None if budget is None else budget.usd,
            names.BUDGET_DEPTH: None if budget is None else budget.depth,
        }
        return _start(bridge, f"{names.INVOKE_WORKFLOW} {text(name)}", parent, attributes, level="fan_out")

    def child(self, parent: SpanHandle | None, role: str, run_id: str, name: str = "") -> SpanHandle:
        """One piece of work, over all its attempts. ``name`` is its label for people."""
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        return _agent(
            bridge, parent, role, {names.RUN_ID: run_id, names.WORK_NAME: name or None}, level="child"
        )

    def attempt(
        self,
        parent: SpanHandle | None,
        *,
        number: int,
        adapter: str,
        pool: str,
        health_state: str,
        probe: bool,
        fallback_reason: str | None = None,
    ) -> SpanHandle:
        """One candidate that was let in.

        :param number: from 1.
        :param health_state: the pool's state as the attempt asked.
        :param fallback_reason: why this is not the first candidate: the category of what it covers.
        """
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        attributes: dict[str, Value | None] = {
            names.ATTEMPT_NUMBER: number,
            names.ADAPTER: adapter,
            names.POOL: pool,
            names.HEALTH_STATE: health_state,
            names.HEALTH_PROBE: probe,
            names.FALLBACK_REASON: fallback_reason,
        }
        return _start(bridge, f"{names.DISPATCH} {text(adapter)}", parent, attributes, level="attempt")

    def blocked(
        self,
        parent: SpanHandle | None,
        *,
        adapter: str,
        pool: str,
        category: str,
        health_state: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """One candidate that was not let in: begun and ended, an error by its category.

        :param retry_after_s: until it may be asked again, in whole seconds, where that is known.
        """
        if (bridge := self._bridge) is None:
            return
        attributes: dict[str, Value | None] = {
            names.ADAPTER: adapter,
            names.POOL: pool,
            names.HEALTH_STATE: health_state,
            names.CATEGORY: category,
            names.OUTCOME: names.NOT_STARTED,
            names.RETRY_AFTER_S: retry_after_s,
        }
        name = f"{names.DISPATCH} {text(adapter)}"
        _start(bridge, name, parent, attributes, level="attempt").end(error_type=category)

    def call(
        self,
        parent: SpanHandle | None,
        *,
        role: str,
        provider: str,
        adapter: str,
        model: str | None,
        effort: str | None,
    ) -> SpanHandle:
        """The call of the runtime itself (CLIENT): what a runtime's own spans hang under.

        :param provider: the descriptor's, which may be empty: the adapter's id stands in for it.
        """
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        attributes: dict[str, Value | None] = {
            names.PROVIDER_NAME: names.provider_name(provider, adapter),
            names.AGENT_ID: role,
            names.ADAPTER: adapter,
            names.REQUEST_MODEL: model,
            names.REASONING_LEVEL: effort,
        }
        return _agent(bridge, parent, role, attributes, level="call")


def _agent(
    bridge: Bridge,
    parent: SpanHandle | None,
    agent: str,
    attributes: dict[str, Value | None],
    *,
    level: Level,
) -> SpanHandle:
    named = {names.OPERATION_NAME: names.INVOKE_AGENT, names.AGENT_NAME: agent, **attributes}
    return _start(bridge, f"{names.INVOKE_AGENT} {text(agent)}", parent, named, level=level)


def _start(
    bridge: Bridge,
    name: str,
    parent: SpanHandle | None,
    attributes: dict[str, Value | None],
    *,
    level: Level,
) -> SpanHandle:
    under = None if parent is None else parent.context
    known = clean(attributes)
    span, context = bridge.start(name, under, known, client=level == "call")
    return SpanHandle(bridge, span, context, level=level, above=parent, attributes=known)


NOTHING = Tracer()
"""The tracer where nothing is traced."""
_NO_SPAN = SpanHandle()


def current_tracer() -> Tracer:
    """The host's tracer, or ``NOTHING`` where it has configured no provider (or switched its SDK off).

    A host that never imported OpenTelemetry pays for one look into ``sys.modules``: we import nothing of it.
    """
    providers = current_providers()
    if providers is None:
        return NOTHING
    from custodes.telemetry.bridge import Bridge

    bridge = Bridge.of(providers)
    return NOTHING if bridge is None else Tracer(bridge, endpoint=providers.endpoint)


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
