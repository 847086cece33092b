"""Actors and supervisor trees on anyio.

An actor owns its state and handles one message at a time; a supervisor starts actors, answers their
crashes by a strategy, and leaves nothing behind. The guide is ``docs/actors.md``.
"""

from .actor import Actor, ActorContext, BatchActor, handles
from .cancellation import ChildEnd
from .child_spec import ChildSpec, Restart
from .envelope import ContextHooks, Message
from .errors import (
    ActorCrashed,
    ActorError,
    ActorStopped,
    AskTimeout,
    ChildLimit,
    DuplicateChild,
    InvalidSpec,
    MailboxFull,
    StartFailed,
    StrayCancellation,
    SupervisorFailed,
    UnhandledMessage,
    UnknownChild,
)
from .intensity import Intensity
from .ref import ActorRef
from .statistics import ActorStatistics, SupervisorStatistics
from .strategies import Strategy
from .supervisor import Supervisor

__all__ = [
    "Actor",
    "ActorContext",
    "ActorCrashed",
    "ActorError",
    "ActorRef",
    "ActorStatistics",
    "ActorStopped",
    "AskTimeout",
    "BatchActor",
    "ChildEnd",
    "ChildLimit",
    "ChildSpec",
    "ContextHooks",
    "DuplicateChild",
    "Intensity",
    "InvalidSpec",
    "MailboxFull",
    "Message",
    "Restart",
    "StartFailed",
    "Strategy",
    "StrayCancellation",
    "Supervisor",
    "SupervisorFailed",
    "SupervisorStatistics",
    "UnhandledMessage",
    "UnknownChild",
    "handles",
]
