"""What goes out: text for people, one JSON document for programs, and the exit code of each end."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, Literal, TextIO

Format = Literal["text", "json"]

DONE = 0
FAILED = 1
"""Failed, or refused."""
USAGE = 2
SIGNALLED = 128
"""Added to the number of the signal that ended the run: 130 after Ctrl-C, 143 after TERM."""
CLOSED_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended."""


class CliError(Exception):
    """An end with one clear line: what was asked, what is wrong, what would work.

    ``kind`` is for programs; ``code`` is the exit code.
    """

    def __init__(self, message: str, *, kind: str = "failed", code: int = FAILED) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = code


class UnwritableError(OSError):
    """Nothing more can be told on stdout."""


def usage_error(message: str) -> CliError:
    return CliError(message, kind="usage", code=USAGE)


def write(text: str = "", stream: TextIO | None = None) -> None:
    """One line, or several, to stdout. What the stream's encoding lacks is written as ``?``, never raised.

    :raises BrokenPipeError: nobody reads any more.
    :raises UnwritableError: the stream takes nothing: a full disk behind it, say.
    """
    out: TextIO = stream if stream is not None else sys.stdout
    encoding = out.encoding or "utf-8"
    try:
        out.write(text.encode(encoding, errors="replace").decode(encoding) + "\n")
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnwritableError(f"the output cannot be written: {error.strerror or error}") from None


def complain(text: str) -> None:
    """A line, or several, to stderr, without control characters: what is wrong may be quoted from a file of
    somebody else's. A closed stderr is nobody's failure."""
    with contextlib.suppress(OSError):
        write(_CONTROL.sub("", text), sys.stderr)


def write_json(value: Any) -> None:
    """The one JSON document of a command, indented."""
    import msgspec

    write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def report_error(error: CliError, form: Format) -> None:
    if form == "json":
        write_json({"error": {"kind": error.kind, "message": str(error)}})
    else:
        complain(f"cos: {error}")


def is_terminal(stream: TextIO) -> bool:
    """Whether a person's terminal is behind it, one that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


CLEAR_SCREEN = "\x1b[H\x1b[J"
"""Written before what stands in the place of what a terminal showed."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def paint(text: str, style: str) -> str:
    """The text in a colour or weight, on a terminal and unless NO_COLOR is set; else as it is."""
    if not is_terminal(sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def counted(count: int, noun: str) -> str:
    """``1 limit``, ``2 limits``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Also what turns the direction of writing around: it can show a path as another one."""


def plain(text: str, width: int = 400) -> str:
    """Foreign text as one bounded line without control characters: a child cannot drive the terminal."""
    line = _CONTROL.sub("", " ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"
