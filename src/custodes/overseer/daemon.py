"""The overseer of a project, for as long as it runs, or for one tick."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from custodes.overseer import holder
from custodes.overseer.actuators import Actuators
from custodes.overseer.ask import Ask, ask
from custodes.overseer.config import Config
from custodes.overseer.decide import Decision
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.holder import AlreadyRunning, Holder
from custodes.overseer.incident import Incident
from custodes.overseer.journal import Journal
from custodes.overseer.notify import Postman, Send, send
from custodes.overseer.overseer import Observer, Overseer
from custodes.overseer.probe import Answer
from custodes.overseer.tree import tree
from custodes.overseer.watch import Watch, resting
from custodes.store import Database, StoreDamaged
from custodes.supervision.pools.pool_table import load_pools
from custodes.supervision.record.clock import Now, now
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

logger = logging.getLogger("custodes.overseer")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """``event`` is ``opened``, ``moved`` or ``resolved``."""

    event: str
    incident: Incident


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """What one round came to."""

    asked: tuple[str, ...]
    watches: tuple[Watch, ...]
    decisions: tuple[Decision, ...]
    events: tuple[Event, ...]


async def run(
    project: Path,
    config: Config,
    *,
    observer: Observer | None = None,
    started: Callable[[], None] = lambda: None,
    ask: Ask = ask,
    send: Send = send,
    now: Callable[[], Now] = now,
) -> None:
    """Be the project's overseer until cancelled. ``started`` is called once its tree runs.

    Under cancellation a switch that runs is completed or undone, and the project let go.

    :raises AlreadyRunning: another one is, or has taken over.
    :raises StoreError: the project's database cannot be used.
    """
    async with _held(project, now) as (database, mine):
        gone: list[AlreadyRunning] = []
        ended = anyio.Event()

        def lost(error: AlreadyRunning) -> None:
            gone.append(error)
            ended.set()

        actuators, journal = Actuators(config, project), Journal(project)
        root = tree(
            config,
            database,
            mine,
            make=lambda: Overseer(config, database, actuators, journal, now, observer),
            ask=ask,
            postman=Postman(config, database, now, send),
            now=now,
            lost=lost,
        )
        async with root:
            started()
            await ended.wait()
        if gone:
            raise gone[0]


async def tick(
    project: Path, config: Config, *, ask: Ask = ask, send: Send = send, now: Callable[[], Now] = now
) -> Tick:
    """One round: ask every provider that may be asked, decide, act, and deliver what waits.

    :raises AlreadyRunning: an overseer runs, and does all this itself.
    :raises StoreError: the project's database cannot be used.
    """
    async with _held(project, now) as (database, _):
        events: list[Event] = []

        def observer(event: str, incident: Incident) -> None:
            events.append(Event(event=event, incident=incident))

        overseer = Overseer(config, database, Actuators(config, project), Journal(project), now, observer)
        await overseer.start()
        pools = [pool for provider in config.providers.values() for pool in provider.pools]
        if pools:
            await overseer.see_pools(await database.read(lambda c: load_pools(c, pools)))
        asked = [
            each
            for each in endpoints(config)
            if any(resting(overseer.watches[name], now(), config) <= 0 for name in each.providers)
        ]
        answers: dict[str, Answer] = {}

        async def ask_one(endpoint: Endpoint) -> None:
            answers[endpoint.name] = await ask(endpoint, config.health_timeout)

        async with anyio.create_task_group() as group:
            for endpoint in asked:
                group.start_soon(ask_one, endpoint)
        for endpoint in asked:
            await overseer.hear(endpoint, answers[endpoint.name])
        decisions = await overseer.act()
        await Postman(config, database, now, send).deliver()
        return Tick(
            asked=tuple(name for endpoint in asked for name in endpoint.providers),
            watches=tuple(overseer.watches.values()),
            decisions=decisions,
            events=tuple(events),
        )


@asynccontextmanager
async def _held(project: Path, now: Callable[[], Now]) -> AsyncIterator[tuple[Database, Holder]]:
    """The project's database, with the project held."""
    path = project / DATABASE
    try:
        database = await Database.open(path, MIGRATIONS)
    except StoreDamaged as error:
        # Nobody stands beside an overseer to start it again. It was set aside, and all is looked at anew.
        logger.error("%s", error)  # noqa: TRY400 - the error says it all
        database = await Database.open(path, MIGRATIONS)
    try:
        mine = await holder.take(database, now())
        try:
            yield database, mine
        finally:
            with anyio.CancelScope(shield=True):
                await holder.leave(database, mine)
    finally:
        await database.aclose()
