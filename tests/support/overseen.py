"""A world for an overseer: providers that do as a test says, profiles on a shelf, a clock that a test moves.

The overseer in it is the real one over a real database; only what stands outside of it is scripted.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.overseer import tables
from custodes.overseer.config import Config
from custodes.overseer.decide import Decision
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.incident import Incident
from custodes.overseer.journal import Journal
from custodes.overseer.overseer import Overseer
from custodes.overseer.probe import Answer
from custodes.overseer.watch import resting
from custodes.store import Database
from custodes.supervision.record.clock import Now
from custodes.supervision.record.schema import MIGRATIONS
from support.overseer import MIDNIGHT

GOOD = Answer(seconds=0.1, status=200)
REFUSED = Answer(seconds=0.0, trouble="refused")
TIMEOUT = Answer(seconds=15.0, trouble="timeout")


def status(code: int, **more: object) -> Answer:
    return Answer(seconds=0.1, status=code, **more)  # type: ignore[arg-type]  # its own fields


class Shelf:
    """Profiles and what each is set to. A profile in ``deaf`` takes no change and says nothing of it; one in
    ``broken`` cannot be read."""

    def __init__(self, profiles: dict[str, ProfileSetting]) -> None:
        self.profiles = profiles
        self.deaf: set[str] = set()
        self.broken: set[str] = set()
        self.reads: list[str] = []
        self.switches: list[tuple[str, str, str]] = []
        self.before_switch: Callable[[str], None] = lambda _: None
        self.after_switch: Callable[[str], None] = lambda _: None

    async def read(self, profile: str) -> ProfileSetting:
        self.reads.append(profile)
        if profile in self.broken or profile not in self.profiles:
            raise SwitchError(f"there is no profile '{profile}'")
        return self.profiles[profile]

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        self.before_switch(profile)
        old = self.profiles[profile]
        if not old.holds(expected):
            raise SwitchError(f"'{profile}' was set to {old} meanwhile")
        if profile in self.deaf:
            raise SwitchError(f"'{profile}' still reads as {old}")
        self.profiles[profile] = wanted
        self.switches.append((profile, old.model, wanted.model))
        self.after_switch(profile)

    async def recover(self, profile: str) -> bool:
        return False

    def set_by_hand(self, profile: str, model: str) -> None:
        self.profiles[profile] = msgspec.structs.replace(self.profiles[profile], model=model)


class World:
    def __init__(self, config: Config, database: Database, project: Path) -> None:
        self.config = config
        self.database = database
        self.project = project
        self.seconds = 0.0
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[float, str, str]] = []
        """When, whom, and with which method."""
        self.shelf = Shelf(
            {name: config.setting(name, row.primary) for name, row in config.fallback_matrix.items()}
        )
        self.told: list[tuple[str, Incident]] = []
        self.overseer = self.successor()

    def now(self) -> Now:
        return Now("boot", 1_000.0 + self.seconds, MIDNIGHT + self.seconds)

    def actuator(self, _: str) -> ProfileSwitch:
        return self.shelf

    def successor(self) -> Overseer:
        """Another overseer over the same database, as after a restart. Start it."""
        self.overseer = Overseer(
            self.config,
            self.database,
            self.actuator,
            Journal(self.project),
            self.now,
            lambda event, incident: self.told.append((event, incident)),
        )
        return self.overseer

    async def ask(self, endpoint: Endpoint, timeout: float) -> Answer:  # noqa: ASYNC109 - as the real one
        method = "POST" if endpoint.probe == "completion" else "GET"
        self.asked.append((self.seconds, endpoint.name, method))
        return self.answers.get(endpoint.name, GOOD)

    async def hear(self, name: str) -> None:
        """One endpoint, by its first provider's name, is asked and heard."""
        (endpoint,) = (each for each in endpoints(self.config) if each.name == name)
        await self.overseer.hear(endpoint, await self.ask(endpoint, self.config.health_timeout))

    async def tick(self, after: float = 300.0) -> tuple[Decision, ...]:
        """One round, and then ``after`` seconds go by."""
        overseer = self.overseer
        for each in endpoints(self.config):
            if any(resting(overseer.watches[name], self.now(), self.config) <= 0 for name in each.providers):
                await overseer.hear(each, await self.ask(each, self.config.health_timeout))
        decisions = await overseer.act()
        self.seconds += after
        return decisions

    async def ticks(self, count: int, after: float = 300.0) -> None:
        for _ in range(count):
            await self.tick(after)

    def model(self, profile: str = "w") -> str:
        return self.shelf.profiles[profile].model

    async def incidents(self) -> list[Incident]:
        return await self.database.read(lambda c: tables.latest_incidents(c, 1_000))

    async def active(self) -> list[Incident]:
        return await self.database.read(tables.active_incidents)

    def events(self) -> list[str]:
        """What was told, in the order it was."""
        return [f"{event} {incident.cause}" for event, incident in self.told]


@asynccontextmanager
async def world(tmp_path: Path, config: Config) -> AsyncIterator[World]:
    database = await Database.open(tmp_path / ".coding-os" / "custodes.db", MIGRATIONS)
    try:
        made = World(config, database, tmp_path)
        await made.overseer.start()
        yield made
    finally:
        await database.aclose()
