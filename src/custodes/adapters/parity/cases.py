"""The cases of the contract: what a runtime is made to do, and what its adapter must say of it.

They are the rows of the table in `failures` (seed 000, "Normalization is an adapter obligation").
"""

from __future__ import annotations

import msgspec

from custodes.adapters.port import Category, Certainty

TIMEOUT_S = 0.5
"""Our deadline in the case ``timeout``, in seconds."""
WAIT_S = 52
RESET_S = 7200
SLACK_S = 90
"""A reset may come out this much later, never earlier: some runtimes tell its moment to the minute."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fail. ``says`` is what the runtime does, ``why`` what a wrong answer would cause.
    ``wait`` is the stated wait in seconds; None: none may be reported. ``retryable`` and ``outcome`` are
    None where either is right."""

    says: str
    category: Category
    retryable: bool = False
    outcome: Certainty | None = "known_failed"
    wait: int | None = None
    why: str


_NO_BREAKER = (
    "a limit without its category opens no breaker, so the same limited pool is asked again and again"
)
_NO_GUESS = "what is not understood may have had effects, so it must not be sent again"
_WAITS_FOR_A_PERSON = "this waits for a person; asking again cannot help and may lock the account"

CASES: dict[str, Case] = {
    "limit": Case(
        says="the provider refuses with a rate limit (429) and states no wait",
        category="capacity",
        retryable=True,
        why=_NO_BREAKER,
    ),
    "limit with a wait": Case(
        says=f"the same, with a stated wait of {WAIT_S} seconds",
        category="capacity",
        retryable=True,
        wait=WAIT_S,
        why="a wait that is not passed on is guessed, and a guess is too early or too late",
    ),
    "usage limit with a reset": Case(
        says=f"a plan's usage limit, with its reset in {RESET_S} seconds",
        category="capacity",
        retryable=True,
        wait=RESET_S,
        why="a spent plan resets at a known time; every try before it is refused",
    ),
    "billing": Case(
        says="payment is required (402), or the credit is spent",
        category="unavailable",
        why=_WAITS_FOR_A_PERSON,
    ),
    "overloaded": Case(
        says="the provider is overloaded (503 or 529)",
        category="provider",
        retryable=True,
        outcome="unknown",
        why="overload is no quota of ours: it may be tried again soon, but what was begun is not known",
    ),
    "server error": Case(
        says="the provider answers with a server error (500)",
        category="provider",
        retryable=True,
        outcome="unknown",
        why="it may be tried again, but what was begun is not known",
    ),
    "auth": Case(
        says="the login or key is refused (401)",
        category="auth",
        why=_WAITS_FOR_A_PERSON + "; it is never a timed limit",
    ),
    "invalid": Case(
        says="the request itself is refused: an unknown model (404)",
        category="invalid",
        why="the same request is refused every time",
    ),
    "timeout": Case(
        says=f"it says nothing until our deadline ({TIMEOUT_S} s) has passed",
        category="timeout",
        outcome="unknown",
        why="whether a silent runtime did the work is not known, so it must never be replayed",
    ),
    "unanticipated": Case(
        says="it fails in a way nobody foresaw",
        category="provider",
        outcome="unknown",
        why=_NO_GUESS,
    ),
    "no proof of success": Case(
        says="it ends well (exit code 0, or a closed stream) without saying that it is done",
        category="provider",
        outcome="unknown",
        why="half an answer that reads as a whole one is worse than a failure: success needs proof",
    ),
    "our own refusal": Case(
        says="it fails and prints our own words: 'all eligible adapters are at capacity'",
        category="provider",
        outcome=None,
        why="an agent may run this very tool; its refusals are no limit of the runtime's provider",
    ),
    "innocent words": Case(
        says="it fails and prints '402913 tokens used at line 4031'",
        category="provider",
        outcome=None,
        why="digits inside other words are no status",
    ),
}

MEANS: dict[str, str] = {
    **{name: case.says for name, case in CASES.items()},
    "success": "it answers `stage.answer`",
    "permission": "it asks leave to run `stage.wanted`, runs it if it may, and answers `stage.answer`",
}
"""What the runtime does in everything that is arranged. The last is asked of those alone that declare
``permission_requests``."""
