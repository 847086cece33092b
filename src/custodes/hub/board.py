"""What a live page shows, as named texts in their order, each with the number of the change that made it.

One board serves every browser that looks at the same thing. A browser says which number it has seen and is
told what is newer: one that was slow, or away, is told once of what changed several times. So nothing is
queued for anybody, and nothing is lost.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import msgspec


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What is newer than a number: the texts that ``changed``, those ``added`` at the end; or, where the
    board is not the one that was seen, or lost or moved a text, the ``whole`` of it."""

    number: int
    changed: dict[str, str] = {}
    added: dict[str, str] = {}
    whole: bool = False

    def __bool__(self) -> bool:
        return self.whole or bool(self.changed) or bool(self.added)


class Board:
    def __init__(self) -> None:
        self.epoch: str = secrets.token_hex(4)
        """Tells this board's numbers from those of any other, of an earlier start, too."""
        self.number: int = 0
        self._texts: dict[str, str] = {}
        self._changed: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._reordered = 0

    @property
    def texts(self) -> Mapping[str, str]:
        return self._texts

    @property
    def mark(self) -> str:
        """What a browser that was shown everything has seen."""
        return f"{self.epoch}.{self.number}"

    def update(self, texts: Mapping[str, str]) -> bool:
        """Put the texts in place of those there were; whether anything is new."""
        if list(texts.items()) == list(self._texts.items()):
            return False
        self.number += 1
        before, now = list(self._texts), list(texts)
        if now[: len(before)] != before:
            self._reordered = self.number
            self._changed = {name: at for name, at in self._changed.items() if name in texts}
            self._added = {name: at for name, at in self._added.items() if name in texts}
        for name, text in texts.items():
            if name not in self._texts:
                self._added[name] = self._changed[name] = self.number
            elif self._texts[name] != text:
                self._changed[name] = self.number
        self._texts = dict(texts)
        return True

    def since(self, mark: str) -> Delta:
        """``mark`` is what was seen; any text, since it comes from a browser."""
        epoch, _, number = mark.partition(".")
        seen = int(number) if number.isdecimal() and len(number) < 16 else -1
        if epoch != self.epoch or not 0 <= seen <= self.number or self._reordered > seen:
            return Delta(number=self.number, whole=True)
        return Delta(
            number=self.number,
            changed={
                name: self._texts[name]
                for name, at in self._changed.items()
                if at > seen and self._added[name] <= seen
            },
            added={name: text for name, text in self._texts.items() if self._added[name] > seen},
        )
