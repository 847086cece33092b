"""A message on its way: what was said, where the answer goes, and the context it was said in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio

R_co = TypeVar("R_co", covariant=True)


class Message(Generic[R_co]):
    """Marks a message whose answer is an ``R_co``.

    A message is a frozen, slotted dataclass (or a msgspec Struct) that inherits this too::

        @dataclass(frozen=True, slots=True)
        class Withdraw(Message[int]):
            amount: int
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ContextHooks:
    """How an opaque context travels with a message, so that the kernel knows nothing of tracing.

    :param capture: called in the sender's task for each message; its result goes into the envelope. What it
        raises, the sender gets: nothing was put. Called once more where a child is started, for ``on_start``.
    :param attach: called in the actor's task with that result; what it returns is entered around the
        handling of the message. What either raises is the actor's crash. A message whose exception it
        swallows is answered with None. A batch is of many contexts: none is attached around it.
    """

    capture: Callable[[], object]
    attach: Callable[[object], AbstractContextManager[object]]


class Reply:
    """A one-shot slot. It is answered, or failed, exactly once; then ``event`` is set."""

    __slots__ = ("_error", "_value", "event")

    def __init__(self) -> None:
        self.event: anyio.Event = anyio.Event()
        self._value: Any = None
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.event.is_set()

    def answer(self, value: object) -> None:
        self._once()
        self._value = value

    def fail(self, error: Exception) -> None:
        self._once()
        self._error = error

    def _once(self) -> None:
        if self.event.is_set():
            raise RuntimeError("a message was answered twice")
        self.event.set()

    def result(self) -> Any:
        """The answer; raises the error it was failed with."""
        if self._error is not None:
            raise self._error
        return self._value


class Envelope:
    """``reply`` is None for a tell; ``context`` is None where the tree has no hooks."""

    __slots__ = ("context", "message", "reply")

    def __init__(self, message: Message[Any], reply: Reply | None, context: object) -> None:
        self.message: Message[Any] = message
        self.reply: Reply | None = reply
        self.context: object = context
