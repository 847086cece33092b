# ruff: noqa: N818  # named for what is so (MailboxFull, ActorStopped), as trio and anyio name theirs
"""What can go wrong between actors: one base, and every error names a path in the tree.

An error's words hold the type of a cause and never its text: what an actor was working on may be
secret, and these words reach logs. The cause itself is chained (``__cause__``).
"""

from __future__ import annotations

from collections.abc import Sequence


class ActorError(Exception):
    """The base of all. ``path`` is the place in the tree, such as ``root/store``."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.detail = detail


class MailboxFull(ActorError):
    """Backpressure: ``capacity`` messages wait already. Nothing was put; ask later, or slow down."""

    def __init__(self, path: str, capacity: int) -> None:
        super().__init__(path, f"the mailbox is full ({capacity} messages wait); nothing was delivered")
        self.capacity = capacity


class ActorStopped(ActorError):
    """The actor has stopped, or is stopping, for ``reason``; the message was not handled to its end."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"stopped ({reason})")
        self.reason = reason


class ActorCrashed(ActorError):
    """The actor raised (``__cause__``).

    ``in_hand`` is true where the actor was at work on this very message, so that its effects are
    unknown; false where the message was waiting and was never begun.
    """

    def __init__(self, path: str, cause: BaseException, *, in_hand: bool) -> None:
        what = "while it handled this message" if in_hand else "before it came to this message"
        super().__init__(path, f"crashed {what} ({type(cause).__name__})")
        self.in_hand = in_hand
        self.__cause__ = cause


class AskTimeout(ActorError, TimeoutError):
    """No answer within ``seconds``. A message not begun was withdrawn; one in hand goes on, unheard."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(path, f"gave no answer within {seconds:g} s")
        self.seconds = seconds


class UnhandledMessage(ActorError):
    """The actor has no handler for a message of this type. It is the sender's error: the actor goes on."""

    def __init__(self, path: str, message: object, handled: Sequence[str] = ()) -> None:
        known = f"; it handles {', '.join(handled)}" if handled else ""
        super().__init__(path, f"does not handle {type(message).__qualname__}{known}")
        self.message = message


class StartFailed(ActorError):
    """A child could not be started: its start callable or its ``on_start`` raised (``__cause__``)."""

    def __init__(self, path: str, detail: str, cause: BaseException | None = None) -> None:
        super().__init__(path, detail if cause is None else f"{detail} ({type(cause).__name__})")
        self.__cause__ = cause


class InvalidSpec(ActorError, ValueError):
    """A child spec, an intensity or a cap that no supervisor can follow."""


class DuplicateChild(InvalidSpec):
    """The supervisor has a child of this id already."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "a child of this id is there already; stop it first or choose another id")


class UnknownChild(ActorError, LookupError):
    """The supervisor has no child of this id, and remembers none that ended lately."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "there is no such child")


class ChildLimit(ActorError):
    """A cap on dynamic children refuses another one.

    ``limit`` says which cap (``children`` alive, or ``depth`` in levels), ``maximum`` its value, and
    ``path`` the supervisor that holds it: maybe an ancestor of the one that was asked.
    """

    def __init__(self, path: str, limit: str, maximum: int, child: str) -> None:
        super().__init__(
            path, f"refuses {child}: its cap of {maximum} ({limit} of dynamic children) is reached"
        )
        self.limit = limit
        self.maximum = maximum


class StrayCancellation(ActorError):
    """It was cancelled, and not by its tree: by the host's loop, or out of a future it awaited."""

    def __init__(self, path: str, cause: BaseException | None = None) -> None:
        super().__init__(path, "was cancelled by somebody outside the tree")
        self.__cause__ = cause


class SupervisorFailed(ActorError, ExceptionGroup[Exception]):
    """Restart intensity was exceeded. Raised upward once; the exceptions are the causes, oldest first."""

    def __new__(cls, path: str, detail: str, causes: Sequence[Exception]) -> SupervisorFailed:
        self = super().__new__(cls, f"{path}: {detail}", causes)
        self.path = path
        self.detail = detail
        return self

    def __init__(self, path: str, detail: str, causes: Sequence[Exception]) -> None:
        """``__new__`` has set everything: an exception group is made there."""

    def derive(self, excs: Sequence[Exception], /) -> SupervisorFailed:  # type: ignore[override]  # typeshed's own is generic over the part
        return SupervisorFailed(self.path, self.detail, excs)
