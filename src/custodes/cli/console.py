"""The console script: its streams, its exit code, and the one answer that needs none of the commands."""

from __future__ import annotations

import os
import sys

import custodes
from custodes.cli.output import CLOSED_PIPE, DONE, FAILED, UnwritableError, complain, write
from custodes.system import unsupported

_LEAST_COLUMNS = 10


def main() -> int:
    """Run the command line of this process and return its exit code."""
    _open_what_is_closed()
    _forget_no_width()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except (BrokenPipeError, UnwritableError) as error:
        # Python flushes stdout once more at exit: give it something that takes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
        if isinstance(error, UnwritableError):
            complain(f"cos: {error}")
            code = FAILED
    return code


def version() -> str:
    """What ``cos --version`` prints."""
    return f"custodes {custodes.__version__}"


def _run(words: list[str]) -> int:
    if words == ["--version"]:  # asked by scripts at every start, and needs no command
        write(version())
        return DONE
    if why := unsupported(sys.platform):
        complain(f"cos: {why}")
        return FAILED
    from custodes.cli.app import call

    return call(words)


def _forget_no_width() -> None:
    """A ``COLUMNS`` in which no word has room counts as none: in fewer than three, Rich wraps for ever."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < _LEAST_COLUMNS:
        del os.environ["COLUMNS"]


def _open_what_is_closed() -> None:
    """A closed standard stream would lend its number to the next file that is opened, a database say."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
            setattr(sys, name, os.fdopen(number, mode))
