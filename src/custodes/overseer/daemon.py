"""The overseer of a project, for as long as it runs, or for one tick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from custodes.overseer.actuators import Actuators
from custodes.overseer.ask import Ask, ask
from custodes.overseer.config import Config
from custodes.overseer.decide import Decision
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.holder import AlreadyRunning, holding
from custodes.overseer.incident import Incident
from custodes.overseer.journal import Journal
from custodes.overseer.notify import Postman, Send, send
from custodes.overseer.overseer import Observer, Overseer
from custodes.overseer.probe import Answer
from custodes.overseer.tree import tree
from custodes.overseer.watch import Watch, resting
from custodes.supervision.pools.pool_table import load_pools
from custodes.supervision.record.clock import Now, now


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
    """Be the project's overseer until cancelled. ``started`` is called once its tree runs, which may have to
    wait for a tick or a switch by hand to end.

    Under cancellation a switch that runs is completed or undone, and the project let go.

    :raises AlreadyRunning: another one is, or has taken over.
    :raises StoreError: the project's database cannot be used.
    """
    async with holding(project, now) as (database, mine):
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

    :raises AlreadyRunning: an overseer runs, and does all this itself; or a tick or a switch is at work.
    :raises StoreError: the project's database cannot be used.
    """
    async with holding(project, now, "tick") as (database, _):
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
