"""The program's events on standard output, as they come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custodes.adapters import foreign
from custodes.adapters.answer_text import Telling
from custodes.adapters.gemini.complaint import Complaint
from custodes.adapters.port import Progress, ProgressSink, Usage

_HARMLESS = frozenset({"update_topic"})
"""Tools that only name what the model is about to do."""


class Stream(Telling):
    """What was seen. ``ended`` is the result event's status: None until the program said one."""

    def __init__(self, progress: ProgressSink) -> None:
        super().__init__(progress)
        self.session: str | None = None
        self.model: str | None = None
        self.ended: str | None = None
        self.error = ""
        self.served: Mapping[str, Any] = {}
        self.complaint = Complaint()

    def error_line(self, line: bytes) -> bool:
        before = self.complaint.retries
        stop = self.complaint.take(line.decode("utf-8", "replace"))
        if self.complaint.retries > before:
            self.progress(Progress(kind="retrying"))
        return stop

    def output_line(self, line: bytes) -> bool:
        event = foreign.mapping(foreign.decode(line))
        match event.get("type"):
            case "init":
                self.session = foreign.name(event.get("session_id")) or None
                self.model = foreign.name(event.get("model")) or None
            case "message" if event.get("role") == "assistant":
                self.said(foreign.text(event.get("content")))
            case "tool_use":
                name = foreign.name(event.get("tool_name"))
                self.tool(name, harmless=name in _HARMLESS)
            case "tool_result":
                # What follows a tool is the answer; what came before it was said on the way.
                self.answer.drop()
            case "error" if event.get("severity") == "error":
                self.error = foreign.text(event.get("message"))[:8_000]
            case "result":
                self._result(event)
        return self.answer.too_long

    def _result(self, event: Mapping[str, Any]) -> None:
        self.ended = foreign.text(event.get("status"))
        error = foreign.mapping(event.get("error"))
        self.error = foreign.text(error.get("message"))[:8_000] or self.error
        stats = foreign.mapping(event.get("stats"))
        self.served = foreign.mapping(stats.get("models"))
        self._counted(stats.get("input_tokens"), stats.get("output_tokens"), stats.get("cached"))

    def document(self, printed: bytes) -> None:
        """The one JSON object of ``--output-format json``, where it printed that and no event."""
        said = foreign.mapping(foreign.decode(printed))
        if self.ended is not None or not isinstance(said.get("response"), str):
            return
        self.ended = "success"
        self.session = foreign.name(said.get("session_id")) or None
        self.said(said["response"])
        models = foreign.mapping(foreign.mapping(said.get("stats")).get("models"))
        tokens = {
            name: foreign.mapping(foreign.mapping(model).get("tokens")) for name, model in models.items()
        }
        self.served = {name: {"output_tokens": each.get("candidates")} for name, each in tokens.items()}
        for each in tokens.values():
            self._counted(each.get("prompt"), each.get("candidates"), each.get("cached"))

    def _counted(self, prompt: object, answer: object, cached: object) -> None:
        """A report of tokens; one of none at all is what it prints where nothing came back."""
        tokens = Usage(
            input_tokens=foreign.count(prompt),
            output_tokens=foreign.count(answer),
            cached_input_tokens=foreign.count(cached),
        )
        if tokens.input_tokens or tokens.output_tokens:
            self.used(tokens)

    def served_model(self, asked: str) -> str | None:
        """The model that answered: the one asked for if it did, else the one that wrote most. It may call a
        small one beside it, and falls back to another by itself where it may."""
        wrote = {
            name: foreign.count(foreign.mapping(stats).get("output_tokens")) or 0
            for name, stats in self.served.items()
            if foreign.name(name)
        }
        if not wrote or wrote.get(asked):
            return asked if wrote else None
        return max(wrote, key=lambda name: wrote[name])
