"""Why a native program could not be run, or not be proven gone. Never what it came to by itself."""

from __future__ import annotations

import msgspec


class Survivor(msgspec.Struct, frozen=True):
    """A descendant that could not be ended. ``reason`` is ``forbidden`` (another user's process, which
    we may not signal) or ``stuck`` (killed, but held in the kernel)."""

    pid: int
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid}, {self.reason})"


class ProgramError(Exception):
    """A program could not be run. Nothing of it is running."""


class ProgramMissing(ProgramError):  # noqa: N818 - the adapters' names for what is wrong, not for a fault of ours
    """There is no such program on the PATH it was given, or at the path that was named."""


class ProgramNotExecutable(ProgramError):  # noqa: N818 - as above
    """The file is there, and this system cannot run it: no permission, no program, a missing interpreter."""


class WorkingFolderError(ProgramError):
    """The folder to run in is missing, no folder, or not to be entered."""


class ArgumentsTooLong(ProgramError):  # noqa: N818 - as above
    """The system's bound on arguments and environment is exceeded. Long text belongs on standard input."""


class KeeperError(ProgramError):
    """The keeper could not be started, or was lost before it answered: there is no exit status, and no
    proof beyond ``survivors``, which names what is known to be left."""

    def __init__(self, text: str, survivors: tuple[Survivor, ...] = ()) -> None:
        super().__init__(text)
        self.survivors = survivors


class LeftBehind(KeeperError):  # noqa: N818 - as above
    """A cancelled program left ``survivors``: raised instead of the cancellation, which cannot carry them."""
