"""What was spent of a budget, as words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from custodes.cli.output import paint, plain
from custodes.supervision.budgets.budget import Spending
from custodes.supervision.budgets.fan_out_view import FanOutAccount
from custodes.supervision.work import Budget


def spent_words(spent: Spending) -> Iterator[str]:
    """Each limit there is, and what was spent of it."""
    for noun, total in (
        ("children", spent.children),
        ("s", spent.wall_seconds),
        ("tokens", spent.tokens),
        ("USD", spent.usd),
    ):
        if total.limit is None:
            continue
        asides = [f"{_figure(total.reserved)} more reserved"] if total.reserved else []
        asides += [f"{_figure(total.estimated)} of it estimated"] if total.estimated else []
        asides += [f"{_figure(total.overrun)} over"] if total.overrun else []
        aside = f" ({', '.join(asides)})" if asides else ""
        yield f"{_figure(total.spent)} of {_figure(total.limit)} {noun}{aside}"


_AT_THE_END = {"finish": "what runs finishes", "stop": "what runs is stopped"}


def budget_lines(budget: Budget, spent: Spending) -> Iterator[str]:
    """One, where it has a limit that is counted."""
    if words := ", ".join(spent_words(spent)):
        yield f"budget: {words}; at its end {_AT_THE_END[budget.when_spent]}"


def fan_out_lines(accounts: Iterable[FanOutAccount]) -> Iterator[str]:
    for account in accounts:
        left = paint("  its owner died", "red") if account.abandoned else ""
        for line in budget_lines(account.budget, account.spent):
            yield f"fan-out {paint(plain(account.name), 'bold')}{left}  {line}"


def _figure(value: float) -> str:
    """At most four decimals, and none that say nothing."""
    return f"{value:.4f}".rstrip("0").rstrip(".")
