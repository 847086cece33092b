"""The record of one run of a plan: written before a step starts and with its end, read back after a restart.

Only one process runs a plan at a time: the row names its owner, and a dead owner's plan is taken over after
proof. A write that fails keeps its rows, which go out with the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import anyio
from msgspec.structs import replace

from custodes.store import Connection, Database, StoreError
from custodes.supervision.budgets.budget import Ledger
from custodes.supervision.bundle import BacktrackTold
from custodes.supervision.plans.checkpoints import (
    PlanRow,
    PlanStatus,
    StepRow,
    delete_steps,
    save_plan,
    save_steps,
)
from custodes.supervision.record.clock import Now, now, wall_after

logger = logging.getLogger("custodes.plans")

WAIT_S = 5.0
"""How long a checkpoint may wait for other writers, in seconds; a step that has none does not start."""


@dataclass(slots=True, eq=False)
class PlanBook:
    """``row`` is the plan's own row as it was last written or is about to be. ``ledger`` is what the plan has
    spent and set aside at the moment of a write; None: what the row says."""

    row: PlanRow
    database: Callable[[], Database]
    ledger: Callable[[], Ledger] | None = None
    begun: Now = field(default_factory=now)
    """When this process took it up: what it takes from there is measured, whatever the wall clock does."""
    _late: dict[str, StepRow | None] = field(default_factory=dict)
    """What could not be written: a step's row, or None for a step that has none any more."""
    _turn: anyio.Lock = field(default_factory=anyio.Lock)
    _spent: Ledger | None = None
    """As it was last written."""

    async def starting(self, rows: Iterable[StepRow]) -> None:
        """:raises StoreError: it is not on the disk that these begin, so they must not."""
        async with self._turn:
            await self._write({row.step: row for row in rows})

    async def spending(self) -> None:
        """What an attempt may use from now on counts after a kill, too. One write for all that wait. A store
        that cannot is told, and writes it with the next checkpoint."""
        async with self._turn:
            if self.ledger is None or self.ledger() == self._spent:
                return
            try:
                await self._write({})
            except StoreError as error:
                logger.warning("the ledger of plan run %s is late: %s", self.row.id, error)

    async def ended(
        self,
        rows: Iterable[StepRow],
        *,
        backtracks: tuple[BacktrackTold, ...],
        again: Iterable[str] = (),
    ) -> None:
        """Also of steps that are to run ``again``, and so are as if they had never begun. A store that
        cannot is no reason to fail what is done."""
        changes = {row.step: row for row in rows} | dict.fromkeys(again)
        async with self._turn:
            self.row = replace(self.row, backtracks=backtracks)
            try:
                await self._write(changes)
            except StoreError as error:
                logger.warning("a checkpoint of plan run %s is late: %s", self.row.id, error)
                self._late |= changes

    async def close(self, status: PlanStatus, rows: Iterable[StepRow]) -> None:
        """Nobody runs it any more."""
        async with self._turn:
            self.row = replace(self.row, status=status, owner=None, ended=self._at())
            try:
                await self._write({row.step: row for row in rows})
            except StoreError as error:
                logger.error("the end of plan run %s could not be recorded: %s", self.row.id, error)  # noqa: TRY400 - the words say it

    def _at(self) -> float:
        return wall_after(self.begun, now())

    async def _write(self, changes: Mapping[str, StepRow | None]) -> None:
        changes = {**self._late, **changes}
        ledger = self.row.ledger if self.ledger is None else self.ledger()
        self.row = row = replace(self.row, ledger=ledger, changed=self._at())

        async def fold(connection: Connection) -> None:
            await delete_steps(connection, row.id, (step for step, each in changes.items() if each is None))
            await save_steps(connection, (each for each in changes.values() if each is not None))
            await save_plan(connection, row)

        await self.database().write(fold, wait_s=WAIT_S)
        self._late.clear()
        self._spent = ledger
