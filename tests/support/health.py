"""What tests of the pools share: a clock that tests move, failures, asks, and a tree with a health actor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from custodes.actors import ActorRef, ChildSpec, Supervisor
from custodes.adapters.port import Category, Failure
from custodes.policy.policy import Cooldown
from custodes.store import Database
from custodes.supervision.pools.admission import Admission, Admit, Candidate, Refused, Settle
from custodes.supervision.pools.breaker import Ticket
from custodes.supervision.pools.health import HealthActor, admit
from custodes.supervision.record.clock import Now
from custodes.supervision.record.records import AttemptEnd, AttemptStart
from custodes.supervision.record.schema import MIGRATIONS

COOLDOWN = Cooldown(default_seconds=300, maximum_seconds=3600)


@dataclass(slots=True)
class Clock:
    """Seconds that pass only when a test says so; the wall clock can be stepped apart from them."""

    uptime: float = 1_000.0
    wall_offset: float = 1_790_000_000.0
    boot: str = "boot-1"

    def __call__(self) -> Now:
        return Now(self.boot, self.uptime, self.uptime + self.wall_offset)

    def advance(self, seconds: float) -> None:
        self.uptime += seconds

    def step_wall(self, seconds: float) -> None:
        self.wall_offset += seconds

    def reboot(self, down_s: float) -> None:
        """The machine was off for so long."""
        wall = self.uptime + self.wall_offset + down_s
        self.boot += "'"
        self.uptime = 5.0
        self.wall_offset = wall - self.uptime


def limit(stated: int | None = None) -> Failure:
    return Failure(
        category="capacity", reason="limit", retryable=True, retry_after_s=stated, outcome="known_failed"
    )


def overload(stated: int | None = None) -> Failure:
    return Failure(category="provider", reason="busy", retryable=True, retry_after_s=stated, overloaded=True)


def failed(category: Category, *, retryable: bool = False) -> Failure:
    return Failure(category=category, reason=category, retryable=retryable)


def start(run_id: str = "run-1", number: int = 1, *, mutable: bool = False) -> AttemptStart:
    return AttemptStart(
        run_id=run_id, number=number, conversation="c1", role="reviewer", name="review", mutable=mutable
    )


def candidate(pool: str, fingerprint: str | None = "f1") -> Candidate:
    return Candidate(pool=pool, adapter=pool.partition(":")[0], model="m", fingerprint=fingerprint)


def ask(
    *pools: str | Candidate, lease_s: float = 60.0, cooldown: Cooldown = COOLDOWN, run_id: str = "run-1"
) -> Admit:
    return Admit(
        candidates=tuple(candidate(pool) if isinstance(pool, str) else pool for pool in pools or ("one:a",)),
        attempt=start(run_id),
        lease_s=lease_s,
        cooldown=cooldown,
    )


@dataclass(slots=True)
class World:
    """A project's store and health actor, under a clock of the test's."""

    clock: Clock
    database: Database
    health: ActorRef

    async def admitted(self, *pools: str | Candidate, lease_s: float = 60.0) -> Admission:
        answer = await admit(self.health, ask(*pools, lease_s=lease_s))
        assert isinstance(answer, Admission), answer
        return answer

    async def refused(self, *pools: str | Candidate) -> Refused:
        answer = await admit(self.health, ask(*pools))
        assert isinstance(answer, Refused), answer
        return answer

    async def settle(
        self, ticket: Ticket, failure: Failure | None = None, *, cancelled: bool = False
    ) -> None:
        assert await self.health.ask(
            Settle(ticket=ticket, failure=failure, cancelled=cancelled, end=AttemptEnd())
        )

    async def opened(self, *pools: str, stated: int | None = None) -> None:
        """Let each of these pools report a limit."""
        for pool in pools:
            await self.settle((await self.admitted(pool)).ticket, limit(stated))


@asynccontextmanager
async def world(folder: Path, clock: Clock | None = None) -> AsyncIterator[World]:
    clock = clock or Clock()
    database = await Database.open(folder / ".coding-os" / "custodes.db", MIGRATIONS)
    try:
        spec = ChildSpec("health", lambda: HealthActor(lambda: database, clock, wait_s=0.2))
        async with Supervisor([spec], id="root") as root:
            yield World(clock, database, root.ref("health"))
    finally:
        await database.aclose()
