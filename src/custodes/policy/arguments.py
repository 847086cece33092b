"""A document that a program hands in (a tool's arguments, a request's body) against its Struct's schema, with
words that say what would have been right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from custodes.adapters.errors import instead

T = TypeVar("T", bound=msgspec.Struct)
_LACKING = "Object missing required field "


class ArgumentsError(ValueError):
    """A document that cannot be taken; the text names the place, and what would work."""


@cache
def schema_of(call: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a call, whole in itself: several clients follow no reference. Do not change it."""
    (root,), components = msgspec.json.schema_components((call,), ref_template="{name}")
    whole = _inlined(root, components)
    assert isinstance(whole, dict)  # noqa: S101 - a Struct's schema is an object
    whole.pop("title", None)
    return whole


def _inlined(node: Any, components: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(each, components) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**components[node["$ref"]], **beside}, components)
    found = {key: _inlined(value, components) for key, value in node.items() if key != "title"}
    default = found.get("default", 0)
    if default is None:
        # "Or null" is what leaving a field out means; some clients take no union.
        (only,) = (each for each in found.pop("anyOf") if each != {"type": "null"})
        found = {**only, **found}
    if default is None or default in ("", [], {}) or isinstance(default, dict):
        found.pop("default", None)  # it says no more than that the field may be left out
    if "enum" in found:
        found["type"] = "string"
    return found


def read(call: type[T], arguments: Mapping[str, Any] | None) -> T:
    """The arguments as the call.

    :raises ArgumentsError: an unknown field or word (with the near miss), a missing one, a wrong type.
    """
    given = dict(arguments or {})
    for problem in _unknown(schema_of(call), given, ""):
        raise ArgumentsError(problem)
    try:
        return msgspec.convert(given, call)
    except msgspec.ValidationError as error:
        said, _, place = str(error).replace("`", "").partition(" - at ")
        where = place.removeprefix("$").lstrip(".")
        if said.startswith(_LACKING):
            said = f"the field '{said.removeprefix(_LACKING)}' is missing"
        raise ArgumentsError(f"{where}: {said}" if where else said) from None


def _unknown(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    """Every field and word that the schema does not know, the outermost first."""
    known = schema.get("properties", {})
    if isinstance(value, dict):
        names = schema.get("propertyNames", {}).get("enum")
        for key, inner in value.items():
            here = f"{where}.{key}" if where else str(key)
            if key in known:
                yield from _unknown(known[key], inner, here)
            elif schema.get("additionalProperties") is False:
                yield f"unknown field '{here}'; {instead(str(key), known)}"
            elif names is not None and key not in names:
                yield f"unknown {where.rpartition('.')[2].removesuffix('s')} '{key}'; {instead(key, names)}"
            elif isinstance(schema.get("additionalProperties"), dict):
                yield from _unknown(schema["additionalProperties"], inner, here)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _unknown(schema.get("items") or {}, inner, f"{where}[{number}]")
    elif isinstance(value, str) and value and "enum" in schema:
        words = [word for word in schema["enum"] if word]
        if value.upper() not in [word.upper() for word in words]:
            place, _, name = where.rpartition(".")
            yield f"{place + ': ' if place else ''}unknown {name} '{value}'; {instead(value, words)}"
