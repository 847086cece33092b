"""A fan-out's account as people and surfaces see it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from custodes.supervision.budgets.budget import Spending
from custodes.supervision.budgets.fan_out_table import FanOutRow
from custodes.supervision.budgets.on_record import spent_of
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.work import Budget


class FanOutAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A fan-out with what it has spent of its budget. ``fan_out`` is the id of the group that its attempts
    name. ``abandoned``: it is open though its owner is dead, and ``spent`` is what was last written of it.
    Times are wall seconds since the epoch."""

    fan_out: str
    name: str
    started: float
    ended: float | None
    abandoned: bool
    budget: Budget
    spent: Spending


def account_of(row: FanOutRow, dead: Callable[[Owner], bool], at: float) -> FanOutAccount:
    """:param dead: whether an owner is proven to be gone; asked for open rows only.
    :param at: wall seconds: how much of its time one has spent that is still open.
    """
    abandoned = row.ended is None and dead(row.owner)
    return FanOutAccount(
        fan_out=row.id,
        name=row.name,
        started=row.started,
        ended=row.ended,
        abandoned=abandoned,
        budget=row.ledger.budget,
        spent=spent_of(row, at, abandoned=abandoned),
    )
