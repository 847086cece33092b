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


class MalformedError(Exception):
    """It is not what Hermes would read; says where."""


def parse(text: str) -> dict[str, Any]:
    """The whole document. :raises MalformedError: it is no YAML mapping, or names a key twice."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    try:
        value = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        # The problem alone: the rest of ruamel's message quotes the line, and with it what it holds.
        raise MalformedError(f"{where}{(str(error.problem or 'not YAML').splitlines() or [''])[0]}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise MalformedError(f"not readable as YAML ({type(error).__name__})") from None
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
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode, ScalarNode

    root = YAML().compose(text)
    pairs = root.value if isinstance(root, MappingNode) else []
    model = next((value for key, value in pairs if key.value == "model"), None)
    if not isinstance(model, MappingNode) or model.flow_style or not model.value:
        return None
    known = {key.value: value for key, value in model.value}
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
