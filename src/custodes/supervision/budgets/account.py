"""The one keeper of a fan-out's ledger: each reservation is made, settled or refunded exactly once.

Every call but :meth:`Account.kept` returns at once, so that no two of them ever interleave: what was granted
stays granted. :meth:`Account.follow` only looks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn

import anyio
from msgspec.structs import replace

from custodes.adapters.descriptor import Descriptor, Price
from custodes.adapters.port import Usage
from custodes.policy.history import Record
from custodes.policy.routing import Route
from custodes.supervision.budgets.budget import (
    Ledger,
    Measure,
    Reservation,
    Spending,
    carry,
    fits,
    may_start,
    observe,
    overdrawn,
    refund,
    reserve,
    settle,
    spending,
    take_child,
)
from custodes.supervision.budgets.reckoning import measured, price_of, reckon, typical, unaccountable
from custodes.supervision.work import Budget, Shortfall, Work

Keep = Callable[[], Awaitable[None]]
"""Puts the ledger, as it then is, on record: where a restart finds it, and whoever looks from outside."""

PACE_S = 0.5
"""Between two writes of one ledger as it changes, in seconds: a commit a change would be a commit more for
each attempt."""


@dataclass(slots=True)
class _Held:
    """A run's reservation. ``begun``: its runtime is called, and what it uses counts."""

    reservation: Reservation = field(default_factory=Reservation)
    price: Price | None = None
    begun: bool = False


@dataclass(slots=True)
class Account:
    """Reservations are kept by run id: one for each run that waits or runs."""

    _ledger: Ledger
    records: tuple[Record, ...] = ()
    """What past attempts took: an estimate's second source."""
    changed: anyio.Event | None = None
    """Set with the ledger's next change, where somebody waits for that."""
    _held: dict[str, _Held] = field(default_factory=dict)
    _past: dict[tuple[str, str, str | None], Measure] = field(default_factory=dict)
    _closed_at: float | None = None
    _keep: Keep | None = None

    @classmethod
    def of(cls, budget: Budget, carried: Ledger | None = None, keep: Keep | None = None) -> Account:
        """Its clock stands until :meth:`open`. ``carried`` is the ledger of work that this goes on with: what
        was spent there is spent, and what was reserved there when it broke off counts as spent."""
        ledger = carry(carried, budget) if carried else Ledger(budget=budget, opened_at=0)
        return cls(ledger, _closed_at=0, _keep=keep)

    @property
    def booked(self) -> bool:
        """Whether somebody keeps its ledger on record who was told to be asked before a runtime is called."""
        return self._keep is not None

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self._ledger = ledger
        if self.changed is not None:
            self.changed.set()

    def open(self) -> None:
        """The wall seconds count from now."""
        self.ledger = replace(self.ledger, opened_at=anyio.current_time())
        self._closed_at = None

    def close(self) -> None:
        """The fan-out has ended: its wall seconds count no further."""
        self._closed_at = anyio.current_time()

    @property
    def spending(self) -> Spending:
        return spending(self.ledger, anyio.current_time() if self._closed_at is None else self._closed_at)

    def take_child(self, depth: int = 1, deepest: int | None = None) -> Shortfall | None:
        self.ledger, short = take_child(self.ledger, anyio.current_time(), depth, deepest)
        return short

    def may_start(self) -> Shortfall | None:
        return may_start(self.ledger, anyio.current_time())

    def reserve(
        self, run_id: str, work: Work, routes: Iterable[tuple[Route, Descriptor]]
    ) -> tuple[tuple[Route, ...], tuple[Shortfall, ...]]:
        """The routes whose need is there, and why each other one has to be passed over.

        What the first of them needs is reserved for the run, in place of what it held before; without any
        the run holds nothing.
        """
        routes = tuple(routes)
        if not self.metered:
            return tuple(route for route, _ in routes), ()
        self._give_back(run_id)
        affordable: list[Route] = []
        short: list[Shortfall] = []
        first: Measure | None = None
        for route, descriptor in routes:
            need = self._reckon(work, route, descriptor)
            lacking = self._unaccountable(route, descriptor, need) or fits(self.ledger, need)
            if lacking is not None:
                short.append(lacking)
                continue
            affordable.append(route)
            first = first or need
        if first is not None:
            self._hold(run_id, first)
        return tuple(affordable), tuple(short)

    def reserve_stated(self, run_id: str, work: Work) -> Shortfall | None:
        """For work that another process's ledger accounts for: what the caller reckons is set aside here.
        Settle it by what its outcome says that it used."""
        need = Measure(tokens=work.estimate_tokens, usd=work.estimate_usd)
        return self._hold(run_id, need) if self.metered else None

    def begin(self, run_id: str, work: Work, route: Route, descriptor: Descriptor) -> Shortfall | None:
        """The run's next attempt is let in on this route: it holds what that needs, no more and no less.

        Refused where others took meanwhile what a costlier route than the reserved one needs on top.
        """
        if self.metered:
            self._give_back(run_id)
            if (short := self._hold(run_id, self._reckon(work, route, descriptor))) is not None:
                return short
        held = self._held.setdefault(run_id, _Held())
        held.price, held.begun = price_of(route, descriptor), True
        return None

    async def kept(self) -> None:
        """Before a runtime is called: what its attempt may use is kept, where anything keeps it and there is
        a limit that it counts against."""
        budget = self.ledger.budget
        if self._keep is not None and (self.metered or budget.children is not None):
            await self._keep()

    async def follow(self, keep: Keep) -> NoReturn:
        """Have it kept now, and as it changes, until cancelled. Nothing is decided by it, and what spends the
        budget never waits for it. ``keep`` must not raise."""
        while True:
            self.changed = changed = anyio.Event()
            await keep()
            await changed.wait()
            await anyio.sleep(PACE_S)

    def observe(self, run_id: str, usage: Usage | None) -> Shortfall | None:
        """A running attempt reported what it has used in all so far. The answer is why it has to be stopped:
        it uses what the budget does not have, or has set aside for others."""
        held = self._held.get(run_id)
        if held is None or usage is None:
            return None
        before = held.reservation
        self.ledger, held.reservation = observe(self.ledger, before, measured(usage, held.price))
        if self.ledger.budget.when_spent != "stop" or held.reservation == before:
            return None
        return overdrawn(self.ledger)

    def settle(self, run_id: str, usage: Usage | None, *, unused: bool = False) -> None:
        """The run's attempt ended. ``unused``: its runtime is known to have done nothing, where it reports no
        usage."""
        held = self._held.pop(run_id, _Held())
        if unused and usage is None:
            self.ledger = refund(self.ledger, held.reservation)
        else:
            self.ledger = settle(self.ledger, held.reservation, measured(usage, held.price))

    def release(self, run_id: str) -> None:
        """The run ended, however: what it still holds is refunded, or settled where its runtime was at work
        and nobody knows what it used. Idempotent."""
        held = self._held.get(run_id)
        if held is None:
            return
        if held.begun:
            self.settle(run_id, None)
        else:
            self._give_back(run_id)

    @property
    def metered(self) -> bool:
        """Whether anything has to be reserved before a start."""
        budget = self.ledger.budget
        return budget.tokens is not None or budget.usd is not None

    def _hold(self, run_id: str, need: Measure) -> Shortfall | None:
        self.ledger, granted = reserve(self.ledger, need)
        if isinstance(granted, Shortfall):
            return granted
        self._held[run_id] = _Held(granted)
        return None

    def _give_back(self, run_id: str) -> None:
        if (held := self._held.pop(run_id, None)) is not None:
            self.ledger = refund(self.ledger, held.reservation)

    def _reckon(self, work: Work, route: Route, descriptor: Descriptor) -> Measure:
        key = (route.role, route.adapter, route.model)
        if key not in self._past:
            self._past[key] = typical(self.records, route)
        return reckon(work, route, descriptor, self._past[key])

    def _unaccountable(self, route: Route, descriptor: Descriptor, need: Measure) -> Shortfall | None:
        if self.ledger.budget.usd is None or (why := unaccountable(route, descriptor, need)) is None:
            return None
        usd = self.spending.usd
        return Shortfall(
            limit="usd",
            allowed=self.ledger.budget.usd,
            spent=usd.spent,
            reserved=usd.reserved,
            left=usd.left or 0,
            source=why,
        )
