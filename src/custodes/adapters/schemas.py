"""JSON Schemas as the enforcers of runtimes and providers take them. Pure: a schema in, a schema out.

What they refuse was seen with real requests: a root that is a ``$ref`` ("must be of type object"), and, where
the provider enforces strictly, any object that leaves a property optional or says nothing of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNKNOWN_TO_STRICT = frozenset({"default", "title", "examples", "$schema", "$id", "uniqueItems", "minLength"})
_DEPTH = 50


def rooted(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema with an object at its root: a ``$ref`` there is replaced by what it points to."""
    root = dict(schema)
    for _ in range(_DEPTH):
        target = root.get("$ref")
        found = _pointed(schema, target) if isinstance(target, str) else None
        if found is None:
            break
        root = {**{key: value for key, value in root.items() if key != "$ref"}, **found}
    return root


def strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in the strict subset: each object closed, each of its properties required (an answer that
    states a default is an answer that fits). None where it cannot be said there: an object of free keys.
    """
    try:
        closed: dict[str, Any] = _closed(rooted(schema), 0)
    except _FreeFormError:
        return None
    return closed


class _FreeFormError(Exception):
    """An object whose keys are not known beforehand, or nesting without end."""


def _pointed(schema: Mapping[str, Any], pointer: str) -> Mapping[str, Any] | None:
    """What a local pointer names; None where it names nothing here."""
    if not pointer.startswith("#/"):
        return None
    here: Any = schema
    for step in pointer[2:].split("/"):
        here = here.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else None


def _closed(node: Any, depth: int) -> Any:
    if depth > _DEPTH:
        raise _FreeFormError
    if isinstance(node, list):
        return [_closed(each, depth + 1) for each in node]
    if not isinstance(node, Mapping):
        return node
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs", "definitions"):
            result[key] = {name: _closed(inner, depth + 1) for name, inner in value.items()}
        elif key in ("enum", "const", "required"):
            result[key] = value
        elif key not in _UNKNOWN_TO_STRICT:
            result[key] = _closed(value, depth + 1)
    if node.get("type") == "object" or "properties" in node:
        if not node.get("properties"):
            raise _FreeFormError
        result["additionalProperties"] = False
        result["required"] = list(node["properties"])
    return result
