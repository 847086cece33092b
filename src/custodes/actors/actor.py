"""Actors: a state of one's own, and one message at a time.

An exception that leaves ``receive`` is a crash (OTP's meaning): the state is not to be trusted any more, the
asker is told, and the supervisor decides. What a domain can foresee is no crash: answer it as a value.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import anyio

from .envelope import Message
from .errors import UnhandledMessage

if TYPE_CHECKING:  # an actor is a supervisor's child, and can ask it for siblings: each knows the other
    from .actor_child import ActorChild
    from .ref import ActorRef
    from .supervisor import Supervisor

R = TypeVar("R")
A = TypeVar("A", bound="Actor")


class ActorContext:
    """An actor's place in the tree. Set before ``on_start``."""

    __slots__ = ("_child",)

    def __init__(self, child: ActorChild) -> None:
        self._child = child

    @property
    def path(self) -> str:
        """Such as ``root/conversations/c1/child-3``."""
        return self._child.path

    @property
    def ref(self) -> ActorRef:
        """Itself, to be handed to others. It outlives a restart."""
        return self._child.ref

    @property
    def supervisor(self) -> Supervisor:
        """Its own supervisor: where siblings are looked up and started."""
        return self._child.owner.supervisor

    @property
    def restarts(self) -> int:
        """How often this child was restarted before: 0 in its first incarnation."""
        return self._child.restarts

    def stop(self) -> None:
        """End normally once the present message is done; what waits gets :exc:`~.ActorStopped`."""
        self._child.leave()

    def cleanup(self) -> AbstractContextManager[anyio.CancelScope]:
        """A shield for clean-up, bounded by the spec's ``shutdown`` seconds from the stop on (from now on,
        where none was asked for)::

            try:
                await work()
            finally:
                with self.context.cleanup():
                    await put_things_back()

        After the bound the clean-up itself is cancelled. (A shield of your own has no bound but yours:
        the supervisor waits for it, says so in the log, and shows it as ``overran``.)
        """
        return self._child.cleanup()


def handles(
    message_type: type[Message[R]],
) -> Callable[[Callable[[A, Any], Awaitable[R]]], Callable[[A, Any], Awaitable[R]]]:
    """Mark a method as the handler of one message type; a checker holds its answer to the message's own."""

    def mark(method: Callable[[A, Any], Awaitable[R]]) -> Callable[[A, Any], Awaitable[R]]:
        method.__handles__ = message_type  # type: ignore[attr-defined]  # read back by __init_subclass__
        return method

    return mark


class Actor:
    """Subclass it; mark handlers with :func:`handles`, or override :meth:`receive`."""

    mailbox_size: ClassVar[int] = 128
    """Messages that may wait. A sender beyond it gets :exc:`~.MailboxFull`."""

    context: ActorContext

    _handlers: ClassVar[dict[type, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own: dict[type, str] = {}
        for name, attribute in vars(cls).items():
            if not hasattr(attribute, "__handles__"):
                continue
            message_type = attribute.__handles__
            if message_type in own:
                raise TypeError(
                    f"{cls.__qualname__} has two handlers for {message_type.__qualname__}: "
                    f"{own[message_type]} and {name}"
                )
            own[message_type] = name
        inherited: dict[type, str] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited |= vars(base).get("_handlers", {})
        cls._handlers = inherited | own

    async def on_start(self) -> None:
        """Runs before the first message. If it raises, the child was never started."""

    async def receive(self, message: Any) -> Any:
        """Handle one message; what it returns is the answer.

        When the child is told to stop, this is cancelled at its next checkpoint; see
        :meth:`ActorContext.cleanup`. An answer returned all the same is still delivered.

        :raises UnhandledMessage: there is no handler for its type. An override passes on to this one
            whatever it does not know.
        """
        name = self._handlers.get(type(message))
        if name is None:
            known = sorted(handled.__qualname__ for handled in self._handlers)
            raise UnhandledMessage(self.context.path, message, known)
        return await getattr(self, name)(message)

    async def on_stop(self, reason: str) -> None:
        """Runs last if ``on_start`` has finished: after a stop, a normal end, a crash and ^C alike.

        Shielded, and cancelled at the spec's ``shutdown`` seconds.

        :param reason: the first reason the stop was asked for; ``normal``; or ``crashed: <type>``.
        """


class BatchActor(Actor):
    """Takes all that waits in its mailbox as one batch: to decide over many at once, to commit once."""

    batch_size: ClassVar[int] = 128
    """Messages in one batch at most."""

    async def receive_batch(self, messages: Sequence[Message[Any]]) -> Sequence[Any]:
        """Handle a batch: one answer for each message, in the same order.

        All answers go out after it returned; if it raises, none does and every asker is told of the crash.
        """
        raise UnhandledMessage(self.context.path, messages[0])
