"""A chat completion put together from its pieces, streamed or whole. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custodes.adapters import foreign
from custodes.adapters.port import Usage

MAX_CHARS = 4_000_000
"""Of one answer."""
DONE_REASONS = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence"})


class TooLongError(Exception):
    """The answer is over `MAX_CHARS`."""


class Answer:
    """What came so far. ``finish`` is the server's finish reason, None until it said one."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.finish: str | None = None
        self.refused = False
        self.usage: Usage | None = None
        self.model: str | None = None
        self.error: object = None

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()

    def take(self, chunk: object) -> int:
        """One event's or a whole answer's JSON; how many characters of model output came with it.

        :raises TooLongError: over the bound.
        """
        if not isinstance(chunk, Mapping):
            return 0
        if chunk.get("error"):
            self.error = chunk["error"]
        self.model = foreign.name(chunk.get("model")) or self.model
        if isinstance(usage := chunk.get("usage"), Mapping):
            self.usage = _usage(usage)
        choices = chunk.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, Mapping) or first.get("index", 0) != 0:
            return 0
        if isinstance(finish := first.get("finish_reason"), str) and finish:
            self.finish = finish.lower()
        message = first.get("delta") or first.get("message")
        return self._message(message) if isinstance(message, Mapping) else 0

    def _message(self, message: Mapping[str, Any]) -> int:
        text = _text(message.get("content"))
        if text:
            self._parts.append(text)
        if message.get("refusal"):
            self.refused = True
        # A model that thinks aloud first is at work: that too is its output, though no part of the answer.
        thinking = _text(message.get("reasoning_content") or message.get("reasoning"))
        self._length += len(text) + len(thinking)
        if self._length > MAX_CHARS:
            raise TooLongError
        return len(text) + len(thinking)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _usage(said: Mapping[str, Any]) -> Usage:
    details = foreign.mapping(said.get("prompt_tokens_details"))
    return Usage(
        input_tokens=foreign.count(said.get("prompt_tokens")),
        output_tokens=foreign.count(said.get("completion_tokens")),
        cached_input_tokens=foreign.count(details.get("cached_tokens")),
    )
