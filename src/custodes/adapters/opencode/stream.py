"""The program's events on standard output, as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custodes.adapters import foreign
from custodes.adapters.answer_text import Telling
from custodes.adapters.opencode.log import Log
from custodes.adapters.port import Progress, ProgressSink, Usage


class Stream(Telling):
    """What was seen. ``reason`` is the last finished step's, None while a step is open or none began."""

    def __init__(self, progress: ProgressSink) -> None:
        super().__init__(progress)
        self.session: str | None = None
        self.reason: str | None = None
        self.error: Mapping[str, Any] | None = None
        self.log = Log()

    def error_line(self, line: bytes) -> bool:
        before = self.log.failed
        stop = self.log.take(line.decode("utf-8", "replace"))
        if self.log.failed > before:
            self.progress(Progress(kind="retrying"))
        if self.log.tool:
            self.tool(self.log.tool)
        return stop

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        self.session = foreign.name(event.get("sessionID")) or self.session
        part = foreign.mapping(event.get("part"))
        match event.get("type"):
            case "step_start":
                # What follows a tool, or a cut stream that is tried again, is the answer.
                self.answer.drop()
                self.reason = None
            case "text":
                self.said(foreign.text(part.get("text")))
            case "reasoning":
                self.progress(Progress(kind="output", chars=len(foreign.text(part.get("text")))))
            case "tool_use":
                self.tool(foreign.name(part.get("tool")))
            case "step_finish":
                self._finished(part)
            case "error" if self.error is None:
                self.error = foreign.mapping(event.get("error"))
        return self.answer.too_long

    def _finished(self, part: Mapping[str, Any]) -> None:
        self.reason = foreign.text(part.get("reason"))
        used = Usage(
            **_tokens(foreign.mapping(part.get("tokens"))),
            # It says 0 where it knows no price.
            cost_usd=foreign.cost(part.get("cost")) or None,
        )
        self.used(used)


def _tokens(said: Mapping[str, Any]) -> dict[str, int | None]:
    """It counts what it read from the cache, and what it thought, apart; here each belongs to its side."""
    plain, output = foreign.count(said.get("input")), foreign.count(said.get("output"))
    cache = foreign.mapping(said.get("cache"))
    read = foreign.count(cache.get("read"))
    return {
        "input_tokens": None
        if plain is None
        else plain + (read or 0) + (foreign.count(cache.get("write")) or 0),
        "output_tokens": None if output is None else output + (foreign.count(said.get("reasoning")) or 0),
        "cached_input_tokens": read,
    }
