"""The program's events on standard output, as they come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from custodes.adapters import foreign, native
from custodes.adapters.port import Progress, ProgressSink, Usage
from custodes.adapters.qwen.attempts import Attempts

_ERROR = "[API Error:"
"""How it words a provider's failure, as if the model had said it."""


class Stream:
    """What was seen. ``ended`` is the result event: None until the program printed one."""

    def __init__(self, progress: ProgressSink) -> None:
        self._progress = progress
        self.session: str | None = None
        self.model: str | None = None
        self.ended: Mapping[str, Any] | None = None
        self.tools = False
        self.output_seen = False
        self.chars = 0
        self.usage: Usage | None = None
        self.attempts = Attempts()

    @property
    def too_long(self) -> bool:
        return self.chars > native.MAX_ANSWER

    def error_line(self, line: bytes) -> bool:
        before = self.attempts.number
        stop = self.attempts.take(line.decode("utf-8", "replace"))
        if self.attempts.number != before:
            self._progress(Progress(kind="retrying"))
        return stop

    def output_line(self, line: bytes) -> bool:
        said = foreign.decode(line)
        for event in said if isinstance(said, list) else (said,):  # with `--output-format json`, all in one
            self._event(foreign.mapping(event))
        return self.too_long

    def _event(self, event: Mapping[str, Any]) -> None:
        self.session = foreign.name(event.get("session_id")) or self.session
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                self.model = foreign.name(event.get("model")) or None
            case "system" if event.get("subtype") == "retry":
                self._progress(Progress(kind="retrying"))
            case "stream_event":
                self._partial(foreign.mapping(event.get("event")))
            case "assistant":
                self._message(foreign.mapping(event.get("message")))
            case "result":
                self._result(event)

    def _partial(self, event: Mapping[str, Any]) -> None:
        delta = foreign.mapping(event.get("delta"))
        said = foreign.text(delta.get("text")) or foreign.text(delta.get("thinking"))
        if said and not said.startswith(_ERROR):
            self.output_seen = True
            self.chars += len(said)
            self._progress(Progress(kind="output", chars=len(said)))

    def _message(self, message: Mapping[str, Any]) -> None:
        self.model = foreign.name(message.get("model")) or self.model
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            part = foreign.mapping(block)
            name = foreign.name(part.get("name"))
            if part.get("type") == "tool_use" and name != "structured_output":
                self.tools = self.output_seen = True
                self._progress(Progress(kind="tool", tool=name or None))
            elif part.get("type") == "text" and not self.output_seen:
                self._whole(foreign.text(part.get("text")))

    def _whole(self, said: str) -> None:
        """A message that did not come in parts."""
        said = said.partition(_ERROR)[0]
        if said:
            self.output_seen = True
            self._progress(Progress(kind="output", chars=len(said)))

    def _result(self, event: Mapping[str, Any]) -> None:
        self.ended = event
        usage = foreign.mapping(event.get("usage"))
        if usage.get("input_tokens") or usage.get("output_tokens"):
            self.usage = Usage(
                input_tokens=foreign.count(usage.get("input_tokens")),
                output_tokens=foreign.count(usage.get("output_tokens")),
                cached_input_tokens=foreign.count(usage.get("cache_read_input_tokens")),
            )
            self._progress(Progress(kind="usage", usage=self.usage))

    @property
    def error(self) -> str:
        """What the result says went wrong, without the wrapping; "" where it is none."""
        said = foreign.text(foreign.mapping((self.ended or {}).get("error")).get("message"))[:8_000]
        return re.sub(rf"^{re.escape(_ERROR)} (.*?)\](\n.*)?$", r"\1", said, flags=re.DOTALL)
