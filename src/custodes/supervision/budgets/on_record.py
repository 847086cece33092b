"""What has been spent of a ledger on record: a fan-out's, or that of a run of a plan."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from custodes.supervision.budgets.budget import Ledger, Spending, spending


class OnRecord(Protocol):
    """Times are wall seconds since the epoch. ``changed`` is when it was last written.

    ``ended`` is None while it is open.
    """

    @property
    def ledger(self) -> Ledger: ...
    @property
    def started(self) -> float: ...
    @property
    def changed(self) -> float: ...
    @property
    def ended(self) -> float | None: ...


def spent_of(row: OnRecord, at: float, *, abandoned: bool) -> Spending:
    """Of an abandoned one that is what was last written. A clock that was stepped back takes no time off.

    :param at: wall seconds: how much of its time one has spent that is still open.
    """
    until = row.changed if abandoned else at if row.ended is None else row.ended
    return spending(replace(row.ledger, opened_at=row.started), max(row.started, until))
