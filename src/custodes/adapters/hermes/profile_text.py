"""A profile's ``config.yaml`` as text: what it says of the model, and the same text with another one.

Hermes reads YAML 1.1 and takes a malformed file for an empty one, which its next write then makes true. So a
file is read here first, as strictly as that calls for, and a change keeps every byte that it does not name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from custodes.adapters.port import ProfileSetting

KEYS = {"base_url": "base_url", "provider": "provider", "model": "default"}
"""Our field, and Hermes's key below ``model``."""
_VERSION = (1, 1)
"""Of YAML, as Hermes reads it."""


class MalformedError(Exception):
    """It is not what Hermes would read; says where."""


def parse(text: str) -> dict[str, Any]:
    """The whole document. :raises MalformedError: it is no YAML mapping, or names a key twice."""
    from custodes.adapters import yaml_text

    try:
        value = yaml_text.load(text, _VERSION)
    except yaml_text.YamlError as error:
        raise MalformedError(str(error)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedError("it is no mapping of keys")
    return value


def setting_of(document: Mapping[str, Any]) -> ProfileSetting:
    """What it says of the model; an empty model where it says nothing."""
    return model_setting(document.get("model"))


def model_setting(model: Any) -> ProfileSetting:
    """Hermes's ``model``: its name alone, or a mapping."""
    if not isinstance(model, Mapping):
        return ProfileSetting(model=_text(model) or "")
    return ProfileSetting(
        model=_text(model.get("default")) or "",
        provider=_text(model.get("provider")),
        base_url=_text(model.get("base_url")),
    )


def with_setting(document: Mapping[str, Any], wanted: ProfileSetting) -> dict[str, Any]:
    """The document as it must read once ``wanted`` is set, and nothing else."""
    before = document.get("model")
    model = dict(before) if isinstance(before, Mapping) else {}
    for field, key in KEYS.items():
        if (value := getattr(wanted, field)) is not None:
            model[key] = value
    return {**document, "model": model}


def respelled(text: str, wanted: ProfileSetting, result: Mapping[str, Any]) -> str | None:
    """``text`` with the values spliced in, comments and all; None where that would not read as ``result``."""
    from ruamel.yaml.nodes import MappingNode, ScalarNode

    from custodes.adapters import yaml_text

    model = yaml_text.pairs(yaml_text.compose(text, _VERSION)).get("model")
    if not isinstance(model, MappingNode) or model.flow_style or not model.value:
        return None
    known = yaml_text.pairs(model)
    first = model.value[0][0]
    splices: list[tuple[int, int, str]] = []
    for field, key in KEYS.items():
        value = getattr(wanted, field)
        if value is None:
            continue
        node = known.get(key)
        if isinstance(node, ScalarNode):
            splices.append(
                (node.start_mark.index, node.end_mark.index, json.dumps(value, ensure_ascii=False))
            )
        elif node is None:
            start, indent = first.start_mark.index, " " * first.start_mark.column
            splices.append((start, start, f"{key}: {json.dumps(value, ensure_ascii=False)}\n{indent}"))
        else:
            return None
    for start, end, spelled in sorted(splices, reverse=True):
        text = text[:start] + spelled + text[end:]
    try:
        return text if parse(text) == result else None
    except MalformedError:
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
