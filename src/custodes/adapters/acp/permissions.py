"""What an agent asks leave for, and the option of its own that an answer chooses."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from custodes.adapters import foreign
from custodes.adapters.asks import asked
from custodes.adapters.port import PermissionAnswer, PermissionAsk

_KINDS: dict[PermissionAnswer, str] = {"allow": "allow_once", "deny": "reject_once"}
"""Nothing is ever allowed, or refused, for good."""


def ask_of(params: Mapping[str, Any]) -> PermissionAsk | None:
    """What a ``session/request_permission`` is about; None where it does not say."""
    call = foreign.mapping(params.get("toolCall"))
    title, given = foreign.text(call.get("title")), foreign.mapping(call.get("rawInput"))
    if not (title or given):
        return None
    return asked(foreign.text(call.get("kind")) or "tool", given, title)


def response(acp: ModuleType, params: Mapping[str, Any], answer: PermissionAnswer | None) -> Any:
    """The option that is the answer; ``cancelled`` where it is not offered, or there was no answer."""
    listed = params.get("options")
    options = [foreign.mapping(each) for each in listed] if isinstance(listed, list) else []
    wanted = _KINDS[answer] if answer else None
    chosen = next((each.get("optionId") for each in options if wanted and each.get("kind") == wanted), None)
    if not isinstance(chosen, str):
        return acp.RequestPermissionResponse(outcome=acp.DeniedOutcome(outcome="cancelled"))
    selected = acp.AllowedOutcome(outcome="selected", option_id=chosen)
    return acp.RequestPermissionResponse(outcome=selected)
