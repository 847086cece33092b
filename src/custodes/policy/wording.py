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


def near_miss(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant."""
    import difflib  # only errors need it

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def instead(word: str, known: Iterable[str]) -> str:
    """What would work in place of ``word``: the near miss where there is one, and every choice."""
    known = list(known)
    if not known:
        return ""
    close = near_miss(word, known) or near_miss(word.lower(), known)
    return (f"did you mean '{close}'? " if close else "") + f"Known: {', '.join(known)}"
