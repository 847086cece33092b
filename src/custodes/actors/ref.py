"""A reference to an actor: all that others hold of it.

It stands for the child, not for one incarnation: it stays good over restarts, and says so, typed, once the
child has ended for good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from .cancellation import ChildEnd
from .envelope import Envelope, Message, Reply
from .errors import AskTimeout
from .statistics import ActorStatistics

if TYPE_CHECKING:  # a child makes its refs
    from .actor_child import ActorChild

R = TypeVar("R")


class ActorRef:
    """Tell, ask, join. Use it in the event loop of its tree only. Two refs of one actor are equal."""

    __slots__ = ("_capture", "_child", "_mailbox", "path")

    def __init__(self, child: ActorChild) -> None:
        self.path: str = child.path
        self._child = child
        self._mailbox = child.mailbox
        hooks = child.hooks
        self._capture = None if hooks is None else hooks.capture

    def __eq__(self, other: object) -> bool:
        return self._child is other._child if isinstance(other, ActorRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._child)

    def __repr__(self) -> str:
        return f"<ActorRef {self.path} {self._child.state}>"

    def tell(self, message: Message[Any]) -> None:
        """Put a message and go on. It is handled unless its incarnation is lost before it is begun.

        :raises MailboxFull: as many messages wait as the mailbox may hold.
        :raises ActorStopped: the actor has ended, or is to end.
        """
        capture = self._capture
        self._mailbox.put(Envelope(message, None, None if capture is None else capture()))

    async def ask(self, message: Message[R], *, timeout: float | None = None) -> R:  # noqa: ASYNC109  # a caller without a scope of its own wants an error with the path
        """Put a message and wait for its answer.

        While the child is between two incarnations the message waits for the next one. If the ask is
        cancelled, or times out, before the actor began the message, the message is withdrawn and never
        handled; if the actor is at it, it is handled to its end and the answer dropped.

        :param timeout: seconds; None waits for as long as the actor lives.
        :raises MailboxFull: as many messages wait as the mailbox may hold.
        :raises ActorStopped: the actor has ended or is to end, or does so before it answers.
        :raises ActorCrashed: it crashed; ``in_hand`` says whether it had begun this message.
        :raises UnhandledMessage: it has no handler for this type.
        :raises AskTimeout: no answer within ``timeout``.
        """
        capture = self._capture
        reply = Reply()
        envelope = Envelope(message, reply, None if capture is None else capture())
        self._mailbox.put(envelope)
        try:
            if timeout is None:
                await reply.event.wait()
            else:
                with anyio.move_on_after(timeout):
                    await reply.event.wait()
        except BaseException:
            self._mailbox.withdraw(envelope)
            raise
        if timeout is not None and not reply.done:
            self._mailbox.withdraw(envelope)
            raise AskTimeout(self.path, timeout)
        answer: R = reply.result()
        return answer

    async def join(self) -> ChildEnd:
        """Wait until the child has ended for good; asks it to do nothing."""
        return await self._child.ending.wait()

    def monitor(self, monitor: Callable[[ChildEnd], object]) -> None:
        """Call ``monitor`` once, when the child has ended for good; at once where it has. (OTP's monitors.)

        It is called in the loop of the tree, between two steps of it: it must not wait. What it raises is
        logged. Unlike :meth:`join` it needs no task that waits.
        """
        self._child.ending.monitor(monitor)

    def statistics(self) -> ActorStatistics:
        return self._child.statistics()
