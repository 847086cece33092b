"""The two hooks by which an actor's envelope carries the host's context, in the real kernel."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import pytest
from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import get_current_span

from custodes.actors import Actor, ChildSpec, ContextHooks, Message, Supervisor
from custodes.telemetry import Tracer, attach, capture


def current_span_id() -> int:
    return get_current_span().get_span_context().span_id


@dataclass(frozen=True, slots=True)
class WhoAsks(Message[int]):
    """Answered with the id of the span the handler runs under."""


class Echo(Actor):
    async def receive(self, message: WhoAsks) -> int:
        await anyio.lowlevel.checkpoint()
        return current_span_id()


@pytest.mark.anyio
async def test_a_long_lived_actor_handles_each_message_in_its_senders_context(
    provider: TracerProvider, anyio_backend: str
) -> None:
    host = provider.get_tracer("host")
    async with Supervisor(context=ContextHooks(capture, attach)) as root:
        with host.start_as_current_span("birth"):
            echo = await root.start_child(ChildSpec(id="echo", start=Echo))
        for name in ("first", "second"):
            with host.start_as_current_span(name):
                assert await echo.ask(WhoAsks()) == current_span_id() != 0
        assert await echo.ask(WhoAsks()) == current_span_id() == 0


@pytest.mark.anyio
async def test_a_conversation_begun_in_an_actor_hangs_under_the_senders_span(
    tracer: Tracer, provider: TracerProvider, anyio_backend: str
) -> None:
    class Root(Actor):
        async def receive(self, message: WhoAsks) -> int:
            with tracer.conversation("ours") as conversation:
                return int(conversation.traceparent()["TRACEPARENT"][3:35], 16)

    async with Supervisor(context=ContextHooks(capture, attach)) as root:
        ref = await root.start_child(ChildSpec(id="root", start=Root))
        with provider.get_tracer("host").start_as_current_span("request") as request:
            assert await ref.ask(WhoAsks()) == request.get_span_context().trace_id


@pytest.mark.anyio
async def test_a_cancel_inside_restores_the_context_and_goes_on(
    provider: TracerProvider, anyio_backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    with provider.get_tracer("host").start_as_current_span("request"):
        captured = capture()
    with anyio.CancelScope() as scope:
        with attach(captured):
            assert current_span_id() != 0
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert current_span_id() == 0
    assert caplog.records == []


def test_attaching_nothing_leaves_the_hosts_context_alone(provider: TracerProvider) -> None:
    with provider.get_tracer("host").start_as_current_span("request"):
        here = current_span_id()
        with attach(None):
            assert current_span_id() == here


def test_a_handle_carries_what_else_the_hosts_context_held(tracer: Tracer) -> None:
    with attach(baggage.set_baggage("tenant", "t1", Context())), tracer.conversation("ours") as conversation:
        pass
    with tracer.child(conversation, "analyst", "run-1") as child, attach(child.context):
        assert baggage.get_baggage("tenant") == "t1"
