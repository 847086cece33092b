"""The 11 semantic roles, and what each starts from when nobody decided otherwise (resolution step 5).

A default names a tier and an effort, never a model id: which model that is, is the adapter's to say
(``models[].tier`` in its descriptor). What an adapter does not offer falls through to the next step.
"""

from __future__ import annotations

from typing import Literal, TypeGuard, get_args

import msgspec

from custodes.adapters.errors import instead, quoted

Role = Literal[
    "researcher",
    "analyst",
    "architect",
    "documenter",
    "implementer",
    "reviewer",
    "debugger",
    "security_auditor",
    "deployer",
    "observer",
    "refactorer",
]

ROLES: tuple[Role, ...] = get_args(Role)

Tier = Literal["fast", "balanced", "deep"]


class RoleDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """``timeout_s`` bounds one attempt, in seconds. ``input_tokens`` and ``output_tokens`` are what one
    attempt is reckoned at where nothing better is known (estimates, reservations)."""

    purpose: str
    tier: Tier
    effort: str
    timeout_s: float
    mutable: bool
    input_tokens: int
    output_tokens: int
    reason: str


ROLE_DEFAULTS: dict[Role, RoleDefaults] = {
    "researcher": RoleDefaults(
        purpose="Finds out what is known, with a source for each claim.",
        tier="balanced",
        effort="medium",
        timeout_s=900,
        mutable=False,
        input_tokens=60_000,
        output_tokens=4_000,
        reason="Reads widely and judges little; time goes into many look-ups, not into thought.",
    ),
    "analyst": RoleDefaults(
        purpose="Turns what is known into conclusions and risks.",
        tier="balanced",
        effort="high",
        timeout_s=900,
        mutable=False,
        input_tokens=40_000,
        output_tokens=4_000,
        reason="Weighs evidence that is already there: thought matters more than reading.",
    ),
    "architect": RoleDefaults(
        purpose="Decides structure, with the alternatives that were turned down.",
        tier="deep",
        effort="xhigh",
        timeout_s=1800,
        mutable=False,
        input_tokens=60_000,
        output_tokens=6_000,
        reason="A wrong decision here is paid for by every later role; it is asked seldom.",
    ),
    "documenter": RoleDefaults(
        purpose="Writes what a reader needs.",
        tier="fast",
        effort="low",
        timeout_s=900,
        mutable=True,
        input_tokens=30_000,
        output_tokens=6_000,
        reason="Restates what is decided; easily checked by reading it.",
    ),
    "implementer": RoleDefaults(
        purpose="Writes the change and shows that it works.",
        tier="balanced",
        effort="medium",
        timeout_s=3600,
        mutable=True,
        input_tokens=150_000,
        output_tokens=15_000,
        reason="Works in long loops of edits and test runs, whose outcome corrects it.",
    ),
    "reviewer": RoleDefaults(
        purpose="Finds what is wrong with a change.",
        tier="balanced",
        effort="high",
        timeout_s=900,
        mutable=False,
        input_tokens=50_000,
        output_tokens=3_000,
        reason="Input is bounded by the change; a missed defect costs more than the thought.",
    ),
    "debugger": RoleDefaults(
        purpose="Finds the cause of a failure, reproduces it and removes it.",
        tier="deep",
        effort="high",
        timeout_s=3600,
        mutable=True,
        input_tokens=120_000,
        output_tokens=8_000,
        reason="The cause is unknown at the start: search, instrument and run, over a long time.",
    ),
    "security_auditor": RoleDefaults(
        purpose="Finds what an attacker could use.",
        tier="deep",
        effort="high",
        timeout_s=1800,
        mutable=False,
        input_tokens=80_000,
        output_tokens=4_000,
        reason="A miss is found by somebody else; never writes, so that an audit leaves no trace.",
    ),
    "deployer": RoleDefaults(
        purpose="Brings a version into an environment, with its way back.",
        tier="balanced",
        effort="low",
        timeout_s=1800,
        mutable=True,
        input_tokens=30_000,
        output_tokens=2_000,
        reason="Follows a known procedure; waits for pipelines and is never replayed.",
    ),
    "observer": RoleDefaults(
        purpose="Reads signals and says what is out of order.",
        tier="fast",
        effort="low",
        timeout_s=300,
        mutable=False,
        input_tokens=15_000,
        output_tokens=1_500,
        reason="Asked often about little; a late answer is of no use.",
    ),
    "refactorer": RoleDefaults(
        purpose="Changes structure and leaves behaviour as it was.",
        tier="balanced",
        effort="medium",
        timeout_s=3600,
        mutable=True,
        input_tokens=120_000,
        output_tokens=15_000,
        reason="Mechanical over many files, and held by the tests that are there.",
    ),
}


def is_role(word: str) -> TypeGuard[Role]:
    return word in ROLES


def unknown_role(word: str) -> str:
    """The refusal of a role that is none, with the one probably meant."""
    return f"unknown role {quoted(word)}; {instead(word, ROLES)}"


def defaults_for(role: str) -> RoleDefaults:
    """:raises ValueError: no such role; the near miss is named."""
    for known, defaults in ROLE_DEFAULTS.items():
        if known == role:
            return defaults
    raise ValueError(unknown_role(role))
