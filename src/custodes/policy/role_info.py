"""What each role is for and what it starts from, as one document for every surface."""

from __future__ import annotations

import msgspec

from custodes.policy.roles import ROLE_DEFAULTS, Tier, defaults_for


class RoleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """``timeout_s`` bounds one attempt, in seconds; the tokens are what one attempt is reckoned at."""

    role: str
    purpose: str
    tier: Tier
    effort: str
    timeout_s: float
    mutable: bool
    input_tokens: int
    output_tokens: int
    reason: str


def role_info(role: str = "") -> tuple[RoleInfo, ...]:
    """One role; every one of the 11 where none is named.

    :raises ValueError: no such role; the near miss is named.
    """
    return tuple(
        RoleInfo(role=name, **msgspec.structs.asdict(defaults_for(name)))
        for name in ([role] if role else ROLE_DEFAULTS)
    )
