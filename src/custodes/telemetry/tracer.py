"""The spans of one tree: conversation -> fan-out -> child -> attempt -> runtime call.

Parents are explicit handles, not the ambient context: an actor, a thread and a mailbox task each run in
some other context than the work they do. Only the root looks at the ambient context, so that the tree
hangs under whatever span the host has open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from custodes.telemetry import shapes
from custodes.telemetry.providers import current_providers
from custodes.telemetry.shapes import Limits
from custodes.telemetry.span_handle import SpanHandle, begin
from custodes.telemetry.span_record import SpanRecord

if TYPE_CHECKING:  # loaded only where somebody has configured a provider
    from custodes.telemetry.bridge import Bridge


class Tracer:
    """Begins the spans of the tree. Without a bridge each call is a branch that returns the same nothing."""

    __slots__ = ("_bridge", "endpoint")

    def __init__(self, bridge: Bridge | None = None, *, endpoint: Mapping[str, str] | None = None) -> None:
        self._bridge = bridge
        self.endpoint: Mapping[str, str] = dict(endpoint or {})
        """The OTLP variables that lead a runtime to the same collector; empty where its environment does."""

    def emit(self, records: Iterable[SpanRecord]) -> None:
        """Hand on spans that were not made here, as they are."""
        if self._bridge is not None:
            self._bridge.emit(records)

    def conversation(self, conversation_id: str) -> SpanHandle:
        """The root. Its parent is the host's current span, if it has one open.

        :param conversation_id: the host's; an empty one is left out, since none is ever invented.
        """
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        return begin(bridge, None, shapes.conversation(conversation_id))

    def fan_out(self, parent: SpanHandle | None, name: str, budget: Limits | None = None) -> SpanHandle:
        """Children that were asked for together. ``name`` is one of few; their number is set at the end."""
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        return begin(bridge, parent, shapes.fan_out(name, budget))

    def child(self, parent: SpanHandle | None, role: str, run_id: str, name: str = "") -> SpanHandle:
        """One piece of work, over all its attempts. ``name`` is its label for people."""
        if (bridge := self._bridge) is None:
            return _NO_SPAN
        return begin(bridge, parent, shapes.child(role, run_id, name))

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
        shape = shapes.attempt(
            number=number,
            adapter=adapter,
            pool=pool,
            health_state=health_state,
            probe=probe,
            fallback_reason=fallback_reason,
        )
        return begin(bridge, parent, shape)

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
        shape = shapes.blocked(
            adapter=adapter,
            pool=pool,
            category=category,
            health_state=health_state,
            retry_after_s=retry_after_s,
        )
        begin(bridge, parent, shape).end(error_type=category)

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
        shape = shapes.call(role=role, provider=provider, adapter=adapter, model=model, effort=effort)
        return begin(bridge, parent, shape)


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
