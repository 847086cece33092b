"""The one predicate "does the policy apply", for the host's injection and for dispatch alike."""

from __future__ import annotations

from typing import Literal, get_args

from custodes.policy.policy import Complexity, Policy

Decision = Literal["off", "below_gate", "suggest", "supervised"]

COMPLEXITIES: tuple[Complexity, ...] = get_args(Complexity)
"""In rank order, lowest first (seed 000: CLEAR < COMPLICATED < COMPLEX < CHAOTIC)."""


def complexity_of(word: str | None) -> Complexity | None:
    """A complexity in any case; None where it is missing or unknown."""
    if word is None:
        return None
    upper = word.strip().upper()
    return next((known for known in COMPLEXITIES if known == upper), None)


def applies(policy: Policy, module_enabled: bool, complexity: str | None) -> Decision:
    """Whether a request is supervised.

    ``off``: one of the two gates is shut. ``below_gate``: adaptive, and the request ranks below the
    threshold or carries no complexity we know (it is never escalated by accident); it runs on the session
    default. ``suggest``: resolved and returned, not run. ``supervised``: routed, and through the breaker.
    """
    if not (module_enabled and policy.enabled):
        return "off"
    if policy.mode == "suggest":
        return "suggest"
    if policy.mode == "adaptive":
        known = complexity_of(complexity)
        if known is None or COMPLEXITIES.index(known) < COMPLEXITIES.index(policy.complexity_threshold):
            return "below_gate"
    return "supervised"
