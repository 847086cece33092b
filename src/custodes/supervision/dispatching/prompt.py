"""What a runtime is told beside the work itself: its role, and the shape of the answer."""

from __future__ import annotations

from custodes.adapters.descriptor import Descriptor
from custodes.policy.roles import ROLE_DEFAULTS, Role
from custodes.supervision.evidence import schema_text


def prompt_for(role: Role, prompt: str, descriptor: Descriptor) -> str:
    """The prompt as it stands for a runtime that is handed the schema; else with the schema in words."""
    if descriptor.can("structured_output"):
        return prompt
    return (
        f"You are the {role}. {ROLE_DEFAULTS[role].purpose}\n\n{prompt}\n\n"
        "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n"
        f"{schema_text(role)}"
    )
