"""Custodes: supervisor trees for the coding agents you already have.

``async with custodes.Supervision(project) as supervision`` embeds it; ``cos`` is its command line. Names load
at first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from custodes.supervision.asks.permission_asks import Permissions
    from custodes.supervision.conversation import Conversation
    from custodes.supervision.evidence import Evidence
    from custodes.supervision.fan_out import FanOut
    from custodes.supervision.supervision import Supervision
    from custodes.supervision.work import Budget, Outcome, Refusal, Work

__all__ = [
    "Budget",
    "Conversation",
    "Evidence",
    "FanOut",
    "Outcome",
    "Permissions",
    "Refusal",
    "Supervision",
    "Work",
    "__version__",
]

_HOMES = {
    "Budget": "work",
    "Conversation": "conversation",
    "Evidence": "evidence",
    "FanOut": "fan_out",
    "Outcome": "work",
    "Permissions": "asks.permission_asks",
    "Refusal": "work",
    "Supervision": "supervision",
    "Work": "work",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # as slow as all the rest of a command's start

        return version("custodes")
    if name in _HOMES:
        return getattr(import_module(f"custodes.supervision.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'custodes' has no attribute {name!r}")
