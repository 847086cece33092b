"""One ledger for a whole fan-out: what it may spend, what is reserved and spent, and why no more is given.

Pure functions on frozen Structs. Amounts are integers (USD in billionths), since sums of floats drift: of 10
with 9.9 spent, 0.1 must still fit. The executor beside them is :mod:`custodes.supervision.budgets.account`.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from custodes.supervision.work import Budget, Limit, Shortfall

NESTED_DEPTH = 3
"""How many levels of children there are at most where no budget says otherwise; 1 is the parent's own."""
NESTED_CHILDREN = 100
"""How many children of children a fan-out has at most, all levels together, where its budget sets no number
of children: what starts itself again and again ends there."""

_NANO = 1_000_000_000
_MOST_USD = 1e15
"""What is more counts as this much: of far larger floats the billionths are no number."""
_DEFAULT = "the default for nested work; the fan-out's budget may say otherwise"
_METERED: tuple[Literal["tokens", "usd"], ...] = ("tokens", "usd")


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What something takes: tokens in and out together, and USD. None is not known. ``tokens_from`` and
    ``usd_from`` say where an estimate comes from."""

    tokens: int | None = None
    usd: float | None = None
    tokens_from: str = ""
    usd_from: str = ""


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """Exact: ``tokens``, and ``usd`` in billionths of a USD."""

    tokens: int = 0
    usd: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(tokens=self.tokens + other.tokens, usd=self.usd + other.usd)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(tokens=self.tokens - other.tokens, usd=self.usd - other.usd)

    def at_least(self, other: Amount) -> Amount:
        return Amount(tokens=max(self.tokens, other.tokens), usd=max(self.usd, other.usd))


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt was granted, and what of it was seen used so far."""

    granted: Amount = Amount()
    used: Amount = Amount()

    @property
    def held(self) -> Amount:
        """What is still set aside for it."""
        return (self.granted - self.used).at_least(Amount())


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """``opened_at`` is on the host loop's clock, in seconds. ``estimated`` is the part of ``spent`` that no
    runtime reported: it was settled at its reservation."""

    budget: Budget
    opened_at: float
    children: int = 0
    """All that were counted, nested ones included."""
    nested: int = 0
    reserved: Amount = Amount()
    spent: Amount = Amount()
    estimated: Amount = Amount()

    def wall_seconds_left(self, now: float) -> float | None:
        """Seconds until nothing more may start; None without a limit."""
        if self.budget.wall_seconds is None:
            return None
        return self.opened_at + self.budget.wall_seconds - now


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """One limit's account. ``left`` is None without a limit; ``estimated`` is the part of ``spent`` that was
    not reported; ``overrun`` is what was spent beyond the limit."""

    limit: float | None
    spent: float
    reserved: float = 0
    left: float | None
    estimated: float = 0
    overrun: float = 0


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """What a fan-out has spent. ``tokens`` are those in and out together."""

    children: Total
    wall_seconds: Total
    tokens: Total
    usd: Total


def carry(ledger: Ledger, budget: Budget) -> Ledger:
    """The ledger of work that goes on in another process, under this budget: what attempts held that broke
    off there is settled at their reservations, since nobody knows what they used."""
    return Ledger(
        budget=budget,
        opened_at=0,
        children=ledger.children,
        nested=ledger.nested,
        spent=ledger.spent + ledger.reserved,
        estimated=ledger.estimated + ledger.reserved,
    )


def take_child(
    ledger: Ledger, now: float, depth: int = 1, deepest: int | None = None
) -> tuple[Ledger, Shortfall | None]:
    """Count one child, at this depth below the parent that owns the ledger. Refused past the number of
    children, the depth or the fan-out's deadline.

    ``deepest`` narrows the depth, for a child of one that was given less. Without a budget's word
    :data:`NESTED_DEPTH` and :data:`NESTED_CHILDREN` hold.
    """
    budget, nested = ledger.budget, depth > 1
    allowed = NESTED_DEPTH if budget.depth is None else budget.depth
    default = budget.depth is None
    if deepest is not None and deepest < allowed:
        allowed, default = deepest, False
    if depth > allowed:
        source = _DEFAULT if default else ""
        return ledger, Shortfall(
            limit="depth", allowed=allowed, spent=allowed, left=0, needed=depth, source=source
        )
    if budget.children is not None and ledger.children >= budget.children:
        return ledger, Shortfall(
            limit="children", allowed=budget.children, spent=ledger.children, left=0, needed=1
        )
    if nested and budget.children is None and ledger.nested >= NESTED_CHILDREN:
        return ledger, Shortfall(
            limit="children",
            allowed=NESTED_CHILDREN,
            spent=ledger.nested,
            left=0,
            needed=1,
            source=_DEFAULT,
        )
    if (late := may_start(ledger, now)) is not None:
        return ledger, late
    return replace(ledger, children=ledger.children + 1, nested=ledger.nested + nested), None


def may_start(ledger: Ledger, now: float) -> Shortfall | None:
    """Whether an attempt may start at ``now``: nothing starts after the fan-out's deadline."""
    left, limit = ledger.wall_seconds_left(now), ledger.budget.wall_seconds
    if left is None or limit is None or left > 0:
        return None
    return Shortfall(limit="wall_seconds", allowed=limit, spent=now - ledger.opened_at, left=0)


def fits(ledger: Ledger, need: Measure) -> Shortfall | None:
    """Why ``need`` cannot be reserved now, or None. What is not known needs only that something is left."""
    for limit in _METERED:
        allowed = _limit(ledger.budget, limit)
        if allowed is None:
            continue
        spent, reserved = getattr(ledger.spent, limit), getattr(ledger.reserved, limit)
        left = allowed - spent - reserved
        needed = getattr(_amount(need), limit)
        if needed > left or left <= 0:
            return Shortfall(
                limit=limit,
                allowed=_figure(limit, allowed),
                spent=_figure(limit, spent),
                reserved=_figure(limit, reserved),
                left=_figure(limit, max(left, 0)),
                needed=_figure(limit, needed),
                source=getattr(need, f"{limit}_from") if needed else "",
            )
    return None


def reserve(ledger: Ledger, need: Measure) -> tuple[Ledger, Reservation | Shortfall]:
    """Set aside what an attempt needs of each limited amount: all of it, or nothing and the reason."""
    if (short := fits(ledger, need)) is not None:
        return ledger, short
    wanted, budget = _amount(need), ledger.budget
    granted = Amount(
        tokens=wanted.tokens if budget.tokens is not None else 0,
        usd=wanted.usd if budget.usd is not None else 0,
    )
    return replace(ledger, reserved=ledger.reserved + granted), Reservation(granted=granted)


def observe(ledger: Ledger, reservation: Reservation, used: Measure) -> tuple[Ledger, Reservation]:
    """The attempt was seen to have used so much in all: that is spent, and no longer only reserved."""
    seen = _amount(used).at_least(reservation.used)
    after = replace(reservation, used=seen)
    return replace(
        ledger,
        reserved=ledger.reserved - reservation.held + after.held,
        spent=ledger.spent + (seen - reservation.used),
    ), after


def settle(ledger: Ledger, reservation: Reservation, used: Measure) -> Ledger:
    """The attempt ended, and used so much in all. What is not known is settled at its reservation, or at
    what was seen where that is more."""
    known = _amount(used)
    reckoned = reservation.granted.at_least(reservation.used)
    final = Amount(
        tokens=reckoned.tokens if used.tokens is None else known.tokens,
        usd=reckoned.usd if used.usd is None else known.usd,
    )
    guessed = Amount(
        tokens=final.tokens - reservation.used.tokens if used.tokens is None else 0,
        usd=final.usd - reservation.used.usd if used.usd is None else 0,
    )
    return replace(
        ledger,
        reserved=ledger.reserved - reservation.held,
        spent=ledger.spent + (final - reservation.used),
        estimated=ledger.estimated + guessed,
    )


def refund(ledger: Ledger, reservation: Reservation) -> Ledger:
    """The attempt never started, or is known to have used nothing more than was seen."""
    return replace(ledger, reserved=ledger.reserved - reservation.held)


def overdrawn(ledger: Ledger) -> Shortfall | None:
    """The first amount of which more is spent and reserved than the budget has; what is reserved for others
    is theirs."""
    for limit in _METERED:
        allowed = _limit(ledger.budget, limit)
        spent, reserved = getattr(ledger.spent, limit), getattr(ledger.reserved, limit)
        if allowed is not None and spent + reserved > allowed:
            return Shortfall(
                limit=limit,
                allowed=_figure(limit, allowed),
                spent=_figure(limit, spent),
                reserved=_figure(limit, reserved),
                left=0,
                needed=0,
            )
    return None


def spending(ledger: Ledger, now: float) -> Spending:
    """The ledger's totals as people and programs read them."""
    budget, seconds = ledger.budget, now - ledger.opened_at
    return Spending(
        children=Total(
            limit=budget.children,
            spent=ledger.children,
            left=None if budget.children is None else budget.children - ledger.children,
        ),
        wall_seconds=Total(
            limit=budget.wall_seconds,
            spent=round(seconds, 3),
            left=None if budget.wall_seconds is None else round(max(0.0, budget.wall_seconds - seconds), 3),
            overrun=0 if budget.wall_seconds is None else round(max(0.0, seconds - budget.wall_seconds), 3),
        ),
        tokens=_total(ledger, "tokens"),
        usd=_total(ledger, "usd"),
    )


def _total(ledger: Ledger, limit: Literal["tokens", "usd"]) -> Total:
    allowed = _limit(ledger.budget, limit)
    spent, reserved = getattr(ledger.spent, limit), getattr(ledger.reserved, limit)
    return Total(
        limit=None if allowed is None else _figure(limit, allowed),
        spent=_figure(limit, spent),
        reserved=_figure(limit, reserved),
        left=None if allowed is None else _figure(limit, max(0, allowed - spent - reserved)),
        estimated=_figure(limit, getattr(ledger.estimated, limit)),
        overrun=0 if allowed is None else _figure(limit, max(0, spent - allowed)),
    )


def _limit(budget: Budget, limit: Literal["tokens", "usd"]) -> int | None:
    if limit == "tokens":
        return budget.tokens
    return None if budget.usd is None else _billionths(budget.usd)


def _amount(measure: Measure) -> Amount:
    return Amount(tokens=measure.tokens or 0, usd=_billionths(measure.usd or 0))


def _billionths(usd: float) -> int:
    return round(min(usd, _MOST_USD) * _NANO)


def _figure(limit: Limit, amount: int) -> float:
    return amount / _NANO if limit == "usd" else amount
