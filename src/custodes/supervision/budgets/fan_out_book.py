"""The record of one fan-out's ledger, for whoever looks at it from outside: written as it changes, and with
its end.

Nothing is decided by it. What spends the budget never waits for it, and a store that cannot take it stops
nothing: the next change is written again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from msgspec.structs import replace

from custodes.store import Connection, Database, StoreError
from custodes.supervision.budgets.account import Account
from custodes.supervision.budgets.fan_out_table import FanOutRow, save_fan_out
from custodes.supervision.record.clock import Now, now, wall_after
from custodes.supervision.record.records import Group

logger = logging.getLogger("custodes.fan_outs")

WAIT_S = 5.0
"""How long a write may wait for other writers, in seconds."""


@dataclass(slots=True, eq=False)
class FanOutBook:
    """``row`` is what was last written, or is about to be."""

    row: FanOutRow
    account: Account
    database: Callable[[], Database]
    begun: Now
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    @classmethod
    def of(
        cls, group: Group, conversation: str, account: Account, database: Callable[[], Database]
    ) -> FanOutBook:
        begun = now()
        row = FanOutRow(
            id=group.id,
            conversation=conversation,
            name=group.name,
            ledger=account.ledger,
            started=begun.wall - account.spending.wall_seconds.spent,
            changed=begun.wall,
        )
        return cls(row, account, database, begun)

    async def keep(self, until: anyio.Event) -> None:
        """Write it now, and as it changes, until that."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.account.follow, self._write)
            await until.wait()
            group.cancel_scope.cancel()

    async def close(self) -> None:
        """The fan-out has ended. Shielded from cancels, and bounded by :data:`WAIT_S`."""
        with anyio.CancelScope(shield=True):
            await self._write(ended=True)

    async def _write(self, *, ended: bool = False) -> None:
        async with self._turn:
            at = wall_after(self.begun, now())
            ledger, end = self.account.ledger, at if ended else None
            self.row = row = replace(self.row, ledger=ledger, changed=at, ended=end)

            async def fold(connection: Connection) -> None:
                await save_fan_out(connection, row)

            try:
                await self.database().write(fold, wait_s=WAIT_S)
            except StoreError as error:
                logger.warning("the account of fan-out %s is late: %s", row.name, error)
