"""What the loopback model says: which tool it calls, and JSON that fits a schema."""

from __future__ import annotations

import re
from typing import Any

from support.loopback.protocol import Body, Call

TEXT = "LOOPBACK-OK"
_SHELL = re.compile(
    r"bash|shell|local_shell|run_shell_command|exec_command|terminal|shell_command|execute|exec|run_in_terminal",
    re.IGNORECASE,
)
OUTSIDE = {"sandbox_permissions": "require_escalated", "justification": "It has to be outside."}
_STRUCTURED = re.compile(r"structured_?output|final_answer", re.IGNORECASE)


def shell_call(tools: list[tuple[str, Body]], command: str, *, outside: bool = False) -> Call | None:
    """The call of whichever declared tool runs a shell command; None where none does. ``outside`` of its
    sandbox, where it knows one."""
    for name, schema in tools:
        if _SHELL.fullmatch(name):
            arguments = _arguments(schema, command)
            leaves = outside and "sandbox_permissions" in schema.get("properties", {})
            return name, {**arguments, **OUTSIDE} if leaves else arguments
    return None


def structured_call(tools: list[tuple[str, Body]]) -> Call | None:
    """The call of a tool that takes the final answer, as some runtimes enforce a schema."""
    for name, schema in tools:
        if _STRUCTURED.fullmatch(name):
            return name, fitting(schema)
    return None


def fitting(schema: Body) -> Any:
    """A small value that fits a JSON Schema of objects, arrays, enums, plain types and choices of them."""
    if schema.get("enum"):
        return schema["enum"][0]
    if choices := schema.get("anyOf"):
        return None if {"type": "null"} in choices else fitting(choices[0])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {name: fitting(inner) for name, inner in schema.get("properties", {}).items()}
    values = {"string": TEXT, "integer": 1, "number": 1.5, "boolean": True, "array": []}
    return values.get(str(kind).lower())


def _arguments(schema: Body, command: str) -> Body:
    properties = schema.get("properties", {})
    arguments: Body = {}
    for name, about in properties.items():
        if name in ("command", "cmd"):
            arguments[name] = ["bash", "-c", command] if about.get("type") == "array" else command
        elif name in ("timeout", "timeout_ms", "yield_time_ms"):
            arguments[name] = 60_000
    plain = {"string": "loopback", "boolean": False, "integer": 60, "number": 60, "array": []}
    for name in schema.get("required", ()):
        kind = str(properties.get(name, {}).get("type", "string")).lower()
        arguments.setdefault(name, plain.get(kind, "loopback"))
    return arguments
