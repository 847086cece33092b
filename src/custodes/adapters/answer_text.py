"""The text of an answer as a native program prints it, piece by piece, to the bound."""

from __future__ import annotations

from custodes.adapters.native import MAX_ANSWER


class AnswerText:
    """Its pieces so far. Beyond `MAX_ANSWER` characters they are counted and not kept."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._chars = 0

    def __str__(self) -> str:
        return "".join(self._parts).strip()

    @property
    def too_long(self) -> bool:
        return self._chars > MAX_ANSWER

    def add(self, said: str) -> None:
        self._chars += len(said)
        if not self.too_long:
            self._parts.append(said)

    def drop(self) -> None:
        """What came so far was said on the way, and is no part of it; it still counts for the bound."""
        self._parts.clear()
