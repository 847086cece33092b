"""What carries the host's OpenTelemetry context in an actor's envelope.

A long-lived actor was started in some other context than that of the message it handles, so the context
travels with the message: ``capture`` in the sender's task, ``attach`` around the handling. Where nothing
loaded OpenTelemetry, both are a branch. An empty context travels too: it must hide the one that the
actor's task was born with.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # never loaded by us: the host has, or there is no context to carry
    from contextvars import Token

    from opentelemetry.context import Context

_NO_CONTEXT: AbstractContextManager[None] = nullcontext()


def capture() -> object:
    """The current context, opaque; None where nothing has loaded OpenTelemetry."""
    return _context_api().get_current() if "opentelemetry.context" in sys.modules else None


def attach(captured: object) -> AbstractContextManager[None]:
    """Makes what ``capture`` (or a span's ``context``) gave the current context of a block in one task.

    None leaves the current context as it is. The block must be left by the task that entered it; it may
    be cancelled, and must not be held across an async generator's yield.
    """
    return _NO_CONTEXT if captured is None else _Attached(captured)


class _Attached:
    __slots__ = ("_context", "_token")

    def __init__(self, context: object) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token: Token[Context] = _context_api().attach(self._context)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _context_api().detach(self._token)


@cache
def _context_api() -> ModuleType:
    """Kept, since an import statement of each message would cost more than all the rest of it."""
    from opentelemetry import context

    return context
