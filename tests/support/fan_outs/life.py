"""One life: what its seed draws from, and the journal that whoever takes part writes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import trio

from custodes import Budget, FanOut, Outcome, Work
from custodes.adapters.port import DispatchRequest, Failure
from custodes.supervision.child import Child
from custodes.supervision.events import ChildQueued, Event
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.record.clock import Now
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.recovery import Survivor
from custodes.supervision.writers.lease import ScopeLease
from support.fan_outs.spans import SpanJournal
from support.fan_outs.temper import Temper

WALL = 1_790_000_000.0
"""What the product's wall clock says as a life begins, in seconds since the epoch."""

MORE_S = 10.0
"""What dispatch adds to an attempt's timeout: the grace of its cancel, and the bound of the proof."""
ADMISSION_S = 2.0
"""What an admission, once it was let through, may take of the store's time before its runtime is called."""
A_MOMENT = 1e-4
"""Wall seconds have no finer grain in a float."""
Used = tuple[int, int]
"""Tokens, and US cents."""


@dataclass(eq=False, repr=False)
class Call:
    """One call of the runtime, as the runtime saw it.

    ``began``, ``returned`` and ``gone`` are places in the order of everything that is written down: it was
    called, it gave its answer, and nothing of it was left. ``at`` and ``output_at`` are virtual seconds.
    """

    request: DispatchRequest
    adapter: str
    deed: str
    estimate: Used
    at: float
    began: int
    returned: int | None = None
    gone: int | None = None
    ended_at: float | None = None
    output_at: float | None = None
    """When it was first seen at work: it has accepted the work then."""
    failure: Failure | None = None
    told: list[tuple[int, Used]] = field(default_factory=list)
    """What it said of its use so far, each with its place in the order."""
    final: Used | None = None
    """What its result says it used; None where it says nothing."""
    leaves: bool = False

    def __repr__(self) -> str:
        kind = "mutable" if self.request.mutable else "read-only"
        span = f"{self.began}-{self.returned}, gone {self.gone}, at {self.at:.3f} s"
        return f"<{self.deed}: {kind} {self.run_id} on {self.pool}, {span}: {self.failure}>"

    @property
    def run_id(self) -> str:
        return self.request.run_id

    @property
    def pool(self) -> str:
        return f"{self.adapter}:{self.request.model}"

    @property
    def accepted(self) -> bool:
        return self.output_at is not None


@dataclass(eq=False)
class Leftover:
    """A process that a call left behind, which nobody can end before ``until``."""

    call: Call
    until: float


@dataclass(eq=False)
class Asked:
    """A child as its parent sees it. ``answers`` are what each of its cancels was answered."""

    work: Work
    child: Child
    at: float
    answers: list[Outcome] = field(default_factory=list)


@dataclass(eq=False)
class Nested:
    """Work that a call asked its owner for. ``outcome`` is what it was told; None where it was cancelled."""

    parent: str
    work: Work
    outcome: Outcome | None = None


@dataclass(eq=False)
class Fan:
    """A fan-out with what was asked of it, in order."""

    fan: FanOut
    budget: Budget
    opened_at: float
    asked: list[Asked] = field(default_factory=list)
    outcomes: tuple[Outcome, ...] = ()
    ended_at: float = 0.0


@dataclass(eq=False)
class Life:
    seed: int
    project: Path
    random: random.Random
    temper: Temper
    deeds: dict[str, int]
    """What a call may do, by name, with its weight in the draw."""
    ticks: Iterator[int] = field(default_factory=lambda: count(1))
    store: Any = None
    """Its database, as a process of a call would open it."""
    calls: list[Call] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    fans: list[Fan] = field(default_factory=list)
    nested: dict[str, Nested] = field(default_factory=dict)
    """By run id."""
    alone: list[Outcome] = field(default_factory=list)
    """Outcomes of single dispatches."""
    disabled: list[tuple[float, float]] = field(default_factory=list)
    """From when to when supervision was disabled, where it was enabled again."""
    events: list[tuple[float, Event]] = field(default_factory=list)
    spans: SpanJournal = field(default_factory=SpanJournal)
    busy_until: float = 0.0
    """Another process writes to the store until then."""
    rows: list[AttemptRow] = field(default_factory=list)
    leases: list[ScopeLease] = field(default_factory=list)
    pools: dict[str, Pool] = field(default_factory=dict)
    """What the store held once the life had ended; its rows, too."""
    ended_at: float = 0.0
    remains: dict[str, int] = field(default_factory=dict)
    """How much of the host's own was still taken then, by what it is."""
    works: dict[str, Work] = field(default_factory=dict)
    """What was asked for in fan-outs and by calls, by run id."""
    estimates: dict[str, Used] = field(default_factory=dict)
    """What parents reckon one attempt at, by run id."""

    _awaited: dict[int, list[trio.Event]] = field(default_factory=dict)

    @property
    def order(self) -> list[str]:
        """The run ids of its children in the order they were asked for."""
        return [event.run_id for _, event in self.events if isinstance(event, ChildQueued)]

    def note(self, run_id: str, work: Work) -> None:
        """Somebody asked for it."""
        self.works[run_id] = work
        self.estimates[run_id] = (work.estimate_tokens or 0, round((work.estimate_usd or 0) * 100))

    def ancestors(self, run_id: str) -> list[str]:
        """The runs that it was asked for by, the nearest first."""
        found: list[str] = []
        while (nested := self.nested.get(run_id)) is not None:
            found.append(run_id := nested.parent)
        return found

    def tick(self) -> int:
        return next(self.ticks)

    def now(self) -> Now:
        """The product's clock: virtual, of one boot."""
        at = trio.current_time()
        return Now("simulated", 1_000.0 + at, WALL + at)

    def observe(self, event: Event) -> None:
        self.events.append((trio.current_time(), event))
        for awaited in self._awaited.pop(len(self.events), ()):
            awaited.set()

    async def happens(self, times: int) -> None:
        """Wait until so many more events were told."""
        awaited = trio.Event()
        self._awaited.setdefault(len(self.events) + times, []).append(awaited)
        await awaited.wait()

    def end_survivors(self, run_ids: Any) -> tuple[list[Survivor], list[Survivor]]:
        """As recovery's, of this life's leftovers."""
        ended: list[Survivor] = []
        left: list[Survivor] = []
        for number, leftover in enumerate(self.leftovers):
            call = leftover.call
            if call.gone is not None or call.run_id not in run_ids:
                continue
            survivor = Survivor(100_000 + number, 1.0, call.run_id)
            if trio.current_time() >= leftover.until:
                call.gone = self.tick()
                ended.append(survivor)
            else:
                left.append(survivor)
        return ended, left


def calls_by_run(life: Life) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    for call in life.calls:
        found[call.run_id].append(call)
    return found


def draw_work(life: Life, *, metered: bool) -> Work:
    draw, temper = life.random, life.temper
    role = draw.choice(temper.roles)
    return Work(
        role=role,
        prompt="do it",
        scope=draw.choice(temper.scopes) if role == "implementer" else (),
        adapter=draw.choice(temper.adapters),
        model=draw.choice(temper.models),
        timeout=draw.choice(temper.timeouts),
        wait=draw.choice(temper.waits),
        estimate_tokens=draw.randrange(100, 1000) if metered else None,
        estimate_usd=draw.randrange(10, 90) / 100 if metered else None,
    )
