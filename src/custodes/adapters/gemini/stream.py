"""The program's events on standard output, as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custodes.adapters import foreign, native
from custodes.adapters.answer_text import AnswerText
from custodes.adapters.gemini.complaint import Complaint
from custodes.adapters.port import Progress, ProgressSink, Usage

_HARMLESS = frozenset({"update_topic"})
"""Tools that only name what the model is about to do."""


class Stream:
    """What was seen. ``ended`` is the result event's status: None until the program said one."""

    def __init__(self, progress: ProgressSink) -> None:
        self._progress = progress
        self.answer = AnswerText()
        self.session: str | None = None
        self.model: str | None = None
        self.ended: str | None = None
        self.error = ""
        self.tools = False
        self.output_seen = False
        self.usage: Usage | None = None
        self.served: Mapping[str, Any] = {}
        self.complaint = Complaint()

    def error_line(self, line: bytes) -> bool:
        before = self.complaint.retries
        stop = self.complaint.take(line.decode("utf-8", "replace"))
        if self.complaint.retries > before:
            self._progress(Progress(kind="retrying"))
        return stop

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        match event.get("type"):
            case "init":
                self.session = foreign.text(event.get("session_id")) or None
                self.model = foreign.text(event.get("model")) or None
            case "message" if event.get("role") == "assistant":
                self._said(foreign.text(event.get("content")))
            case "tool_use":
                self._tool(foreign.text(event.get("tool_name")))
            case "tool_result":
                # What follows a tool is the answer; what came before it was said on the way.
                self.answer.drop()
            case "error" if event.get("severity") == "error":
                self.error = foreign.text(event.get("message"))[:8_000]
            case "result":
                self._result(event)
        return self.answer.too_long

    def _said(self, said: str) -> None:
        if not said:
            return
        self.output_seen = True
        self.answer.add(said)
        self._progress(Progress(kind="output", chars=len(said)))

    def _tool(self, name: str) -> None:
        self.output_seen = True
        self.tools = self.tools or name not in _HARMLESS
        self._progress(Progress(kind="tool", tool=name[:100] or None))

    def _result(self, event: Mapping[str, Any]) -> None:
        self.ended = foreign.text(event.get("status"))
        error = foreign.mapping(event.get("error"))
        self.error = foreign.text(error.get("message"))[:8_000] or self.error
        stats = foreign.mapping(event.get("stats"))
        self.served = foreign.mapping(stats.get("models"))
        self._used(stats.get("input_tokens"), stats.get("output_tokens"), stats.get("cached"))

    def document(self, printed: bytes) -> None:
        """The one JSON object of ``--output-format json``, where it printed that and no event."""
        said = foreign.mapping(foreign.decode(printed))
        if self.ended is not None or not isinstance(said.get("response"), str):
            return
        self.ended = "success"
        self.session = foreign.text(said.get("session_id")) or None
        self._said(said["response"])
        models = foreign.mapping(foreign.mapping(said.get("stats")).get("models"))
        tokens = {
            name: foreign.mapping(foreign.mapping(model).get("tokens")) for name, model in models.items()
        }
        self.served = {name: {"output_tokens": each.get("candidates")} for name, each in tokens.items()}
        for each in tokens.values():
            self._used(each.get("prompt"), each.get("candidates"), each.get("cached"))

    def _used(self, prompt: object, answer: object, cached: object) -> None:
        """A report of tokens; one of none at all is what it prints where nothing came back."""
        used = Usage(
            input_tokens=foreign.count(prompt),
            output_tokens=foreign.count(answer),
            cached_input_tokens=foreign.count(cached),
        )
        if used.input_tokens or used.output_tokens:
            self.usage = native.added(self.usage, used)
            self._progress(Progress(kind="usage", usage=self.usage))

    def served_model(self, asked: str) -> str | None:
        """The model that answered: the one asked for if it did, else the one that wrote most. It may call a
        small one beside it, and falls back to another by itself where it may."""
        wrote = {
            name: foreign.count(foreign.mapping(stats).get("output_tokens")) or 0
            for name, stats in self.served.items()
        }
        if not wrote or wrote.get(asked):
            return asked if wrote else None
        return max(wrote, key=lambda name: wrote[name])
