"""Custodes: supervisor trees for the coding agents you already have.

``async with custodes.Supervision(project) as supervision`` embeds it; ``cos`` is its command line. Names load
at first use, so that importing the package costs nothing: it loads no other module, since the command line
can catch Ctrl-C only once this has run.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from custodes.supervision import (
        Budget,
        Conversation,
        Evidence,
        FanOut,
        Outcome,
        Permissions,
        Refusal,
        Supervision,
        Work,
    )

    __version__: str

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


if not TYPE_CHECKING:  # a checker that sees it takes any name for one that is here

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version  # as slow as all the rest of a command's start

            return version("custodes")
        if name in __all__:
            from importlib import import_module

            return getattr(import_module("custodes.supervision"), name)
        raise AttributeError(f"module 'custodes' has no attribute {name!r}")
