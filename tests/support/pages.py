"""A documentation page as what it tells a reader to do: files to write, commands to type, Python to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE
)
_EXITS = re.compile(r"#.*\bexits (\d+)")


class Block(NamedTuple):
    """``language`` is ``text`` for what is only shown; ``title`` names the file that it is, if it is one."""

    language: str
    title: str
    text: str
    line: int


class Command(NamedTuple):
    """One line of a ``bash`` block. ``code`` is its exit code: 0, or that of its comment (``# exits 1``)."""

    words: list[str]
    code: int


def pages() -> list[str]:
    """Every page there is, relative to the project's root."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in found)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(found["language"], found["title"] or "", found["text"], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def commands(text: str, variables: dict[str, str]) -> Iterator[Command]:
    """The lines of a ``bash`` block, with ``$NAME`` filled in as it is by then."""
    for line in text.replace("\\\n", " ").splitlines():
        filled = re.sub(r"\$([A-Z]+)\b", lambda name: variables.get(name[1], name[0]), line)
        if words := shlex.split(filled, comments=True):
            exits = _EXITS.search(line)
            yield Command(words, int(exits[1]) if exits else 0)


def missing_line(shown: str, out: str) -> str | None:
    """The first line of a ``text`` block that the output does not have, in order; ``…`` stands for any."""
    rest = _narrow(out)
    for line in shown.splitlines():
        found = re.search(".*".join(re.escape(part) for part in _narrow(line).split("…")), rest)
        if found is None:
            return line
        rest = rest[found.end() :]
    return None


def _narrow(text: str) -> str:
    """Columns as they fall do not matter."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())
