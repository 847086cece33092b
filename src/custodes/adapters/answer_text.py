"""An answer as a native program tells it, piece by piece: its text to the bound, and what came with it."""

from __future__ import annotations

from custodes.adapters.native import MAX_ANSWER, added
from custodes.adapters.port import Progress, ProgressSink, Usage


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


class Telling:
    """What the events of a run told so far, and tell on: text, tools, tokens. What each event is, only a
    runtime's own reader knows."""

    def __init__(self, progress: ProgressSink) -> None:
        self.progress = progress
        self.answer = AnswerText()
        self.tools = False
        self.output_seen = False
        self.usage: Usage | None = None

    def said(self, text: str) -> None:
        """A piece of the answer; an empty one is none."""
        if text:
            self.output_seen = True
            self.answer.add(text)
            self.progress(Progress(kind="output", chars=len(text)))

    def tool(self, name: str, *, harmless: bool = False) -> None:
        """A tool is used; after one that is not ``harmless``, what was changed is not known."""
        self.output_seen = True
        self.tools = self.tools or not harmless
        self.progress(Progress(kind="tool", tool=name or None))

    def used(self, usage: Usage) -> None:
        """Tokens on top of those before."""
        self.usage = added(self.usage, usage)
        self.progress(Progress(kind="usage", usage=self.usage))
