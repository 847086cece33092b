"""The words of a refusal, one function each: the playbook's troubleshooting table is looked up by them."""

from __future__ import annotations

from collections.abc import Iterable


def no_eligible_adapter(adapter: str) -> str:
    return f"no eligible dispatch adapter for '{adapter}'"


def no_effort_selection(adapter: str) -> str:
    return f"adapter '{adapter}' does not support effort selection"


def model_not_declared(model: str, adapter: str) -> str:
    return f"model '{model}' is not declared by adapter '{adapter}'"


def cooling_down(pool: str) -> str:
    return f"{pool} is cooling down"


ALL_AT_CAPACITY = "all eligible adapters are at capacity"
PROBE_RUNNING = "capacity recovery probe already running"


def no_model_selection(adapter: str) -> str:
    return f"adapter '{adapter}' does not support model selection"


def effort_not_listed(effort: str, adapter: str) -> str:
    return f"effort '{effort}' is not listed by adapter '{adapter}'"


def no_single_adapter(model: str, effort: str) -> str:
    return f"no single adapter has both model '{model}' and effort '{effort}'"


def choices(words: Iterable[str]) -> str:
    """``a, b or c``."""
    *head, last = words
    return f"{', '.join(head)} or {last}" if head else last
