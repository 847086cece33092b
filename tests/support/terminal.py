"""A program run on a terminal of its own, and the frames of the live tree that it drew there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.program import running

_ERASED = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
"""How a live tree takes its last frame away: line by line, upwards."""
_CURSOR = re.compile(r"\x1b\[\?25[lh]")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Frame(NamedTuple):
    """One state of the tree, with its colours as escapes; ``at`` in seconds since the program's start."""

    at: float
    text: str

    @property
    def words(self) -> list[str]:
        """Its lines without colours, and with ``#`` for each number: the same in every run."""
        return [re.sub(r"[\d.]+", "#", line) for line in plain(self.text).splitlines()]


class Shown(NamedTuple):
    code: int
    parts: list[tuple[float, bytes]]

    @property
    def text(self) -> str:
        return b"".join(part for _, part in self.parts).decode()

    @property
    def frames(self) -> list[Frame]:
        """What stood there between two erasures, from the first tree to the last, without what follows it."""
        found = []
        for at, part in self.parts:
            for piece in _ERASED.split(part.decode(errors="replace")):
                tree = _CURSOR.split(piece)
                drawn = next((text for text in tree if "── " in text), "")
                if drawn:
                    found.append(Frame(at, drawn.replace("\r\n", "\n").strip("\n")))
        return found


def plain(text: str) -> str:
    return _ESCAPE.sub("", text)


def on_terminal(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], columns: int, rows: int
) -> Shown:
    """Run the program to its end on a terminal of that size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    given = {**environment, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
    given.pop("NO_COLOR", None)
    began = time.monotonic()
    parts: list[tuple[float, bytes]] = []
    with running(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=given) as program:
        os.close(theirs)
        while part := _read(ours):
            parts.append((time.monotonic() - began, part))
    os.close(ours)
    return Shown(program.returncode, parts)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO once the other side is closed
        return b""
