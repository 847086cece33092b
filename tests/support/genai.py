"""Holds spans against the public registry of the GenAI conventions (``fixtures/genai_registry.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

REGISTRY: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fixtures/genai_registry.json").read_text()
)
ATTRIBUTES: dict[str, Any] = REGISTRY["attributes"]
DEPRECATED: dict[str, str | None] = REGISTRY["deprecated"]
OPERATION = "gen_ai.operation.name"
PEERS = ("mcp-python-sdk",)
"""Whose own spans are theirs to answer for: libraries that a test drives us with."""
_TEMPLATES = tuple(f"{name}." for name, item in ATTRIBUTES.items() if item["type"].startswith("template"))
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "double": (int, float),
    "boolean": (bool,),
    "string[]": (tuple, list),
}


def violations(span: ReadableSpan, *, content: bool = False) -> list[str]:
    """What the registry forbids in one span; empty for a conforming one.

    :param content: the operator asked for content, so that sensitive attributes are allowed.
    """
    attributes = dict(span.attributes or {})
    return [
        *_status(span, attributes),
        *(fault for name, value in attributes.items() for fault in _attribute(name, value, content=content)),
        *_operation(span, attributes),
    ]


def assert_conforms(spans: Iterable[ReadableSpan]) -> None:
    faults = {span.name: found for span in spans if (found := violations(span))}
    assert not faults, faults


FOREIGN = ("mcp-python-sdk",)
"""Scopes of libraries that make spans of their own in here: theirs to name, and ours only to see ended. (The
MCP client's is an error without a type where its server is killed.)"""


class SpanWatch(SpanProcessor):
    """Sees every span of a provider: what of ours violates the registry, and which are still open."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.ended: list[ReadableSpan] = []
        self.content = False
        """The test asked for contents, so that they are allowed."""
        self._open: dict[int, str] = {}

    def clear(self) -> None:
        self.faults.clear()
        self.ended.clear()
        self.content = False
        self._open.clear()

    @property
    def unended(self) -> list[str]:
        return sorted(self._open.values())

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if span.context is not None:
            self._open[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None:
            self._open.pop(span.context.span_id, None)
        if span.instrumentation_scope is not None and span.instrumentation_scope.name in PEERS:
            return
        self.ended.append(span)
        if span.instrumentation_scope is not None and span.instrumentation_scope.name in FOREIGN:
            return
        self.faults += [f"{span.name}: {fault}" for fault in violations(span, content=self.content)]


def paths(spans: Iterable[ReadableSpan]) -> list[str]:
    """Every span as the path of names from its root, sorted.

    :raises KeyError: a span's parent is not among them: it is an orphan.
    """
    by_id = {span.context.span_id: span for span in spans if span.context is not None}

    def path(span: ReadableSpan) -> str:
        return f"{path(by_id[span.parent.span_id])} > {span.name}" if span.parent else span.name

    return sorted(path(span) for span in by_id.values())


def _status(span: ReadableSpan, attributes: dict[str, Any]) -> Iterator[str]:
    if span.status.status_code is StatusCode.OK:
        yield "the status is set to OK"
    if (span.status.status_code is StatusCode.ERROR) is not ("error.type" in attributes):
        yield f"the status is {span.status.status_code.name}, error.type is {attributes.get('error.type')!r}"


def _attribute(name: str, value: Any, *, content: bool) -> Iterator[str]:
    if name in DEPRECATED:
        yield f"{name} is deprecated for {DEPRECATED[name]}"
    elif name not in ATTRIBUTES:
        if name.startswith(("gen_ai.", "otel.")) and not name.startswith(_TEMPLATES):
            yield f"{name} is not registered"
    else:
        item = ATTRIBUTES[name]
        wanted = _TYPES.get(item["type"])
        if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
            yield f"{name} is a {type(value).__name__}, not a {item['type']}"
        if item.get("sensitive") and not content:
            yield f"{name} is content nobody asked for"


def _operation(span: ReadableSpan, attributes: dict[str, Any]) -> Iterator[str]:
    operation = attributes.get(OPERATION)
    if operation is None:
        return
    types = [item for item in REGISTRY["spans"].values() if operation in item["operations"]]
    if operation not in ATTRIBUTES[OPERATION]["enum"]:
        yield f"{operation} is no registered operation"
    if not types:
        return
    kind = span.kind.name.lower()
    fitting = next((item for item in types if kind in item["kind"]), None)
    if fitting is None:
        yield f"{operation} is never a span of kind {kind}"
        return
    subject = attributes.get(fitting["name_attr"])
    if span.name != (wanted := operation if subject is None else f"{operation} {subject}"):
        yield f"the name is {span.name!r}, not {wanted!r}"
    for name, rule in fitting["attributes"].items():
        if rule["level"] == "required" and name not in attributes:
            yield f"{name} is required"
