"""Is there such a program, and if it did not start, why: in words that say what would work."""

# os.path answers False where pathlib raises, and a PATH may name folders that we may not enter:
# ruff: noqa: PTH110, PTH112, PTH113, PTH118

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from custodes.adapters.process_errors import (
    ArgumentsTooLong,
    ProgramError,
    ProgramMissing,
    ProgramNotExecutable,
    WorkingFolderError,
)


def current_folder() -> str:
    """The folder that this process is in; the root where that was deleted meanwhile."""
    try:
        return str(Path.cwd())
    except OSError:
        return os.sep


def find_program(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> str:
    """The full path of ``argv[0]``, looked for on the PATH of ``environment``.

    :raises ProgramMissing, ProgramNotExecutable, WorkingFolderError: with what would work.
    """
    if not argv or not argv[0]:
        raise ProgramMissing("no program was named: the argument list is empty")
    if not os.path.isdir(cwd):
        raise WorkingFolderError(f"the folder to run in, '{cwd}', {_state(cwd, 'is no folder')}")
    name = argv[0]
    search = environment.get("PATH", os.defpath)
    if os.sep in name:
        places = [os.path.join(cwd, name)]
    else:
        places = [os.path.join(cwd, folder, name) for folder in search.split(os.pathsep) if folder]
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    for place in places:
        if os.path.exists(place):
            wrong = "it is a folder" if os.path.isdir(place) else "it may not be executed (chmod +x)"
            raise ProgramNotExecutable(f"'{place}' is there, but {wrong}: mend it, or name another program")
    if os.sep in name:
        raise ProgramMissing(f"there is no program '{places[0]}'")
    raise ProgramMissing(f"there is no program '{name}' on PATH ({search}): install it, or add its folder")


def _state(path: str, otherwise: str) -> str:
    return otherwise if os.path.exists(path) else "does not exist"


def refuse_unspeakable(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """:raises ProgramError: an argument or variable that no program can be given."""
    for text in (*arguments, *environment, *environment.values()):
        if "\0" in text:
            raise ProgramError("an argument or variable contains a NUL byte, which no program can be given")
    for name in environment:
        if not name or "=" in name:
            raise ProgramError(f"'{name}' is no name for an environment variable")


def not_started(program: str, cwd: str, stage: str, number: int) -> ProgramError:
    """The error for what the keeper said of ``stage`` (``process``, ``folder``, ``program``) and errno."""
    words = os.strerror(number)
    if stage == "folder":
        return WorkingFolderError(f"the folder to run in, '{cwd}', cannot be entered: {words}")
    if stage == "process" or number in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):
        return ProgramError(f"'{program}' could not be started now, for want of resources: {words}")
    if number == errno.E2BIG:
        return ArgumentsTooLong(
            f"the arguments and environment of '{program}' exceed this system's bound: pass long text on "
            f"standard input"
        )
    if number == errno.ENOENT:
        return ProgramNotExecutable(
            f"'{program}' cannot be run: the interpreter named in its first line (or its loader) is missing"
        )
    if number == errno.ENOEXEC:
        return ProgramNotExecutable(f"'{program}' cannot be run: it is no program of this system ({words})")
    return ProgramNotExecutable(f"'{program}' cannot be run: {words}")
