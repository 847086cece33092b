"""A runtime's own spans, hung under the span of its call: which are kept, what of them, and under what.

A runtime sends far more than anybody wants to see, and much that nobody else may: whole prompts, file
contents, SQL. So nothing is passed on that is not named: a span by its name, which the adapter declares with
what it is in the words of the conventions; an attribute by the table below, and only where its value looks
like an identifier or is a number. Events, links and texts of a status are never read at all.

Spans are passed on as they come, and children come before their parents. A span whose parent is not known yet
keeps it; so a parent that is not wanted for itself is still passed on, bare, where a child has named it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from custodes.telemetry import conventions as names
from custodes.telemetry.contents import safe
from custodes.telemetry.span_record import Kind, Source, SpanRecord
from custodes.telemetry.values import Value, clean

MAX_SPANS = 2000
"""Spans of one attempt that are passed on; the rest are counted."""
MAX_KNOWN = 50_000
"""Spans that were left out whose parent is remembered."""

ALLOWED: dict[str, tuple[type, ...]] = {
    names.REQUEST_MODEL: (str,),
    names.RESPONSE_MODEL: (str,),
    names.PROVIDER_NAME: (str,),
    names.CONVERSATION_ID: (str,),
    names.AGENT_NAME: (str,),
    "gen_ai.tool.name": (str,),
    "gen_ai.tool.type": (str,),
    "gen_ai.tool.call.id": (str,),
    "gen_ai.response.id": (str,),
    "gen_ai.request.max_tokens": (int,),
    "gen_ai.request.stream": (bool,),
    "gen_ai.response.time_to_first_chunk": (float, int),
    names.INPUT_TOKENS: (int,),
    names.OUTPUT_TOKENS: (int,),
    names.CACHE_READ_TOKENS: (int,),
    "gen_ai.usage.cache_write.input_tokens": (int,),
    "gen_ai.usage.reasoning.output_tokens": (int,),
    names.ERROR_TYPE: (str,),
    "http.request.method": (str,),
    "http.response.status_code": (int,),
    "server.address": (str,),
    "server.port": (int,),
}
"""Every attribute that is passed on, with the types of its value."""
RENAMED = {
    "gen_ai.system": names.PROVIDER_NAME,
    "gen_ai.usage.prompt_tokens": names.INPUT_TOKENS,
    "gen_ai.usage.completion_tokens": names.OUTPUT_TOKENS,
    "gen_ai.tool.call_id": "gen_ai.tool.call.id",
    "model": names.REQUEST_MODEL,
    "tool_name": "gen_ai.tool.name",
}
"""Older names that runtimes still use (the registry's deprecations), and two that are common."""
_SUBJECTS: dict[str, tuple[str, Kind, tuple[str, ...]]] = {
    "chat": (names.REQUEST_MODEL, "client", (names.PROVIDER_NAME,)),
    "execute_tool": ("gen_ai.tool.name", "internal", ("gen_ai.tool.name",)),
    "invoke_agent": (names.AGENT_NAME, "internal", ()),
}
"""An operation's subject, which its span is named after; its kind; and what it must have."""
_IDENTIFIER = re.compile(r"[\w.:/@+-]{1,256}", re.ASCII)
_ID = 16
"""Characters of a span's id. What is longer is none, and would be remembered at its length."""
_UNKNOWN_ERROR = "_OTHER"
_CONNECTING = "runtime"


@dataclass(slots=True)
class Graft:
    """The spans of one attempt. ``trace`` and ``under`` are the ids of the call that they hang under;
    ``wanted`` maps the name of a span to its operation, or to "" where it is none of the conventions'."""

    trace: str
    under: str
    wanted: Mapping[str, str]
    provider: str = ""
    contents: frozenset[str] = frozenset()
    """The names of contents that are passed on, redacted (:class:`~custodes.telemetry.contents.Contents`)."""
    passed_on: int = 0
    left_out: int = 0
    _known: dict[str, str] = field(default_factory=dict)
    """The parent, by id, of every span that came and was left out."""
    _named: dict[str, SpanRecord] = field(default_factory=dict)
    """Parents that were named by a child that was passed on, and have not come; by their id, the child."""
    _given: set[str] = field(default_factory=set)

    def take(self, spans: Iterable[SpanRecord]) -> Iterator[SpanRecord]:
        """What of a batch is passed on, hung where it belongs."""
        kept = []
        for span in spans:
            if not 0 < len(span.id) <= _ID or len(span.parent) > _ID:
                self.left_out += 1
                continue
            if span.name in self.wanted or span.id in self._named:
                kept.append(span)
            else:
                self._leave_out(span)
        # Only now is known which parents in the same batch are left out.
        for span in kept:
            if span.id in self._given:
                continue
            if self.passed_on >= MAX_SPANS:
                self.left_out += 1
            elif span.name in self.wanted:
                yield self._give(span, self._dressed(span))
            else:
                yield self._give(span, self._bare(span, span.parent))

    def _leave_out(self, span: SpanRecord) -> None:
        self.left_out += 1
        if len(self._known) < MAX_KNOWN:
            self._known[span.id] = span.parent

    def finish(self) -> Iterator[SpanRecord]:
        """What was named as a parent and never came, so that nothing hangs in the air."""
        while self._named:
            missing, child = self._named.popitem()
            yield self._give(replace(child, id=missing), self._bare(child, ""))

    def _give(self, span: SpanRecord, record: SpanRecord) -> SpanRecord:
        self.passed_on += 1
        self._given.add(span.id)
        self._named.pop(span.id, None)
        return replace(
            record,
            trace=self.trace,
            id=self._own(span.id),
            parent=self._parent(record.parent, span),
            begun=min(span.begun, span.ended),
            source=Source(*(_identifier(word) for word in _words(span.source))),
        )

    def _parent(self, parent: str, child: SpanRecord) -> str:
        """The nearest span above that is passed on, or may still be; else the call."""
        climbed: set[str] = set()
        while parent in self._known and parent not in climbed:
            climbed.add(parent)
            parent = self._known[parent]
        if parent not in climbed:
            self._known.update(dict.fromkeys(climbed, parent))  # nobody climbs it again
        # Its root hangs under the call already where it has joined the trace by itself.
        if parent in ("", self.under, child.id) or parent in climbed:
            return self.under
        if parent not in self._given:
            self._named.setdefault(parent, child)
        return self._own(parent)

    def _own(self, foreign: str) -> str:
        """An id of ours for one of theirs: it can be no span's of ours, whatever they send."""
        return hashlib.sha256(f"{self.trace}{self.under}{foreign}".encode()).hexdigest()[:16]

    def _bare(self, span: SpanRecord, parent: str) -> SpanRecord:
        return replace(span, name=_CONNECTING, parent=parent, kind="internal", attributes={}, error=False)

    def _dressed(self, span: SpanRecord) -> SpanRecord:
        attributes = allowed(span.attributes) | {
            name: safe(value) for name in self.contents if isinstance(value := span.attributes.get(name), str)
        }
        if span.error:
            attributes.setdefault(names.ERROR_TYPE, _UNKNOWN_ERROR)
        else:
            attributes.pop(names.ERROR_TYPE, None)
        operation = self.wanted[span.name]
        if operation in _SUBJECTS:
            subject, kind, needs = _SUBJECTS[operation]
            if operation == "chat" and self.provider:
                attributes.setdefault(names.PROVIDER_NAME, self.provider)
            if all(name in attributes for name in needs):
                attributes[names.OPERATION_NAME] = operation
                named = f"{operation} {attributes[subject]}" if subject in attributes else operation
                return replace(span, name=named, kind=kind, attributes=dict(attributes))
        return replace(span, kind="internal", attributes=dict(attributes))


def allowed(attributes: Mapping[str, object]) -> dict[str, Value]:
    """Those of the table, by their newer names, whose value is of its type, no text and no secret."""
    found: dict[str, Value | None] = {}
    for given, value in attributes.items():
        name = RENAMED.get(given, given)
        if name != given and name in attributes:
            continue
        kinds = ALLOWED.get(name)
        if kinds is None or type(value) not in kinds:
            continue
        if isinstance(value, str) and (not _IDENTIFIER.fullmatch(value) or safe(value) != value):
            continue
        if isinstance(value, str | bool | int | float):
            found[name] = value
    return clean(found)


def _identifier(word: str) -> str:
    return word if _IDENTIFIER.fullmatch(word) else ""


def _words(source: Source) -> tuple[str, str, str]:
    return source.service, source.version, source.scope
