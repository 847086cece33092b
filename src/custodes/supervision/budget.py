"""One ledger for a whole fan-out: what it may spend, what is taken, and why no more is given."""

from __future__ import annotations

import msgspec

from custodes.supervision.work import Budget


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """``opened_at`` is on the host loop's clock, in seconds."""

    budget: Budget
    opened_at: float
    children: int = 0

    def wall_seconds_left(self, now: float) -> float | None:
        """Seconds until nothing more may start; None without a limit."""
        if self.budget.wall_seconds is None:
            return None
        return self.opened_at + self.budget.wall_seconds - now


class Exceeded(msgspec.Struct, frozen=True, kw_only=True):
    """Why the ledger gives nothing, in a sentence that says what was left."""

    reason: str


def take_child(ledger: Ledger, now: float) -> tuple[Ledger, Exceeded | None]:
    """Reserve one child. Refused past the number of children or the fan-out's deadline."""
    limit = ledger.budget.children
    if limit is not None and ledger.children >= limit:
        return ledger, Exceeded(reason=f"the fan-out's budget of {limit} children is spent; 0 were left")
    if (late := may_start(ledger, now)) is not None:
        return ledger, late
    return msgspec.structs.replace(ledger, children=ledger.children + 1), None


def may_start(ledger: Ledger, now: float) -> Exceeded | None:
    """Whether an attempt may start at ``now``: nothing starts after the fan-out's deadline."""
    left = ledger.wall_seconds_left(now)
    if left is None or left > 0:
        return None
    return Exceeded(
        reason=f"the fan-out's budget of {ledger.budget.wall_seconds:g} s is spent; nothing starts after it"
    )
