"""The overseer as a tree: a probe for each endpoint, one desk that decides, the notifier, the looks at what
other processes write.

::

    overseer (rest_for_one)
    ├── desk        holds the Overseer; everything that is heard passes here, one at a time
    ├── notifier    delivers what waits, at its own pace
    ├── pools       watches the breaker's pools, where a provider is mapped to any
    ├── switches    takes what persons ask for from other processes
    ├── presence    says that this overseer still runs
    └── probes (one_for_one)
        └── one for each distinct endpoint

A crash of the desk restarts it from the database, with all that talk to it; one of a probe that probe alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

import anyio
import msgspec

from custodes.actors import Actor, ActorError, ActorRef, ChildSpec, Message, Supervisor, handles
from custodes.overseer import holder
from custodes.overseer.ask import Ask
from custodes.overseer.by_hand import SwitchRefused, SwitchReply
from custodes.overseer.config import Config
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.holder import BEAT_S, AlreadyRunning, Holder
from custodes.overseer.looks import PoolLook, PoolsSeen, SwitchAsked, SwitchLook, Turn
from custodes.overseer.notify import Postman
from custodes.overseer.overseer import Overseer
from custodes.overseer.probe import Answer
from custodes.overseer.watch import pause, resting
from custodes.store import Database, StoreError
from custodes.supervision.record.clock import Now

logger = logging.getLogger("custodes.overseer")

AGAIN_S = 30.0
"""How long to wait, in seconds, where the database could not be used."""
DELIVER_S = 5.0
"""How often what waits for its spacing, or for a channel that is down, is looked at again, in seconds."""


class Heard(msgspec.Struct, Message[float], frozen=True):
    """An endpoint's answer. Replied with the seconds until it is to be asked again."""

    endpoint: Endpoint
    answer: Answer


class Due(msgspec.Struct, Message[float], frozen=True):
    """How long an endpoint is not to be asked yet, in seconds."""

    endpoint: Endpoint


class Desk(Actor):
    mailbox_size = 16_384  # every probe of the file may have something to say at the same moment

    def __init__(
        self, make: Callable[[], Overseer], now: Callable[[], Now], notifier: Callable[[], ActorRef]
    ) -> None:
        self._overseer = make()
        self._now = now
        self._notifier = notifier

    async def on_start(self) -> None:
        await self._overseer.start()

    @handles(Heard)
    async def heard(self, message: Heard) -> float:
        overseer = self._overseer
        try:
            await overseer.hear(message.endpoint, message.answer)
            if overseer.ready:
                await self._act()
        except* StoreError as errors:
            logger.warning(
                "what was heard of %s is not kept: %s", message.endpoint.name, errors.exceptions[0]
            )
            return_s = AGAIN_S
        else:
            return_s = self._over(message.endpoint, pause)
        return return_s

    @handles(Due)
    async def due(self, message: Due) -> float:
        return self._over(message.endpoint, resting)

    @handles(SwitchAsked)
    async def switch_asked(self, message: SwitchAsked) -> SwitchReply:
        try:
            done = await self._overseer.switch(message.order)
        except SwitchRefused as error:
            return SwitchReply(kind=error.kind, message=str(error))
        except StoreError as error:
            return SwitchReply(kind="failed", message=f"the project's database cannot be used: {error}")
        self._tell_notifier()
        return SwitchReply(done=done)

    @handles(PoolsSeen)
    async def pools_seen(self, message: PoolsSeen) -> bool:
        kept = False
        try:
            changed = await self._overseer.see_pools(message.pools)
            kept = True
            if changed and self._overseer.ready:
                await self._act()
        except* StoreError as errors:
            logger.warning("what work met with is not kept: %s", errors.exceptions[0])
        return kept

    async def _act(self) -> None:
        await self._overseer.act()
        self._tell_notifier()

    def _tell_notifier(self) -> None:
        with suppress(ActorError):  # it has more than enough to do, or is between two incarnations
            self._notifier().tell(Turn())

    def _over(self, endpoint: Endpoint, rule: Callable[..., float]) -> float:
        """The soonest of the providers behind it."""
        overseer, now = self._overseer, self._now()
        return min(rule(overseer.watches[name], now, overseer.config) for name in endpoint.providers)


class Probe(Actor):
    """Asks one endpoint, tells the desk, and waits for as long as that says."""

    def __init__(self, endpoint: Endpoint, ask: Ask, timeout: float, desk: Callable[[], ActorRef]) -> None:
        self._endpoint = endpoint
        self._ask = ask
        self._timeout = timeout
        self._desk = desk

    async def on_start(self) -> None:
        self.context.ref.tell(Turn())

    @handles(Turn)
    async def turn(self, _: Turn) -> None:
        await anyio.sleep(await self._desk().ask(Due(self._endpoint)))
        while True:
            answer = await self._ask(self._endpoint, self._timeout)
            await anyio.sleep(await self._desk().ask(Heard(self._endpoint, answer)))


class Notifier(Actor):
    """Delivers until nothing waits, and then waits to be told of more."""

    def __init__(self, postman: Postman) -> None:
        self._postman = postman

    async def on_start(self) -> None:
        self.context.ref.tell(Turn())

    @handles(Turn)
    async def turn(self, _: Turn) -> None:
        waits = True
        while waits:
            try:
                waits = await self._postman.deliver()
            except* StoreError as errors:
                logger.warning("nothing can be delivered now: %s", errors.exceptions[0])
            if waits:
                await anyio.sleep(DELIVER_S)


class Presence(Actor):
    """``lost`` is called where another overseer has taken the project over."""

    def __init__(
        self, mine: Holder, database: Database, now: Callable[[], Now], lost: Callable[[AlreadyRunning], None]
    ) -> None:
        self._mine = mine
        self._database = database
        self._now = now
        self._lost = lost

    async def on_start(self) -> None:
        self.context.ref.tell(Turn())

    @handles(Turn)
    async def turn(self, _: Turn) -> None:
        while True:
            await anyio.sleep(BEAT_S)
            try:
                await holder.beat(self._database, self._mine, self._now())
            except AlreadyRunning as error:
                self._lost(error)
                await anyio.sleep_forever()
            except StoreError as error:
                logger.warning("that this overseer runs cannot be written: %s", error)


def tree(
    config: Config,
    database: Database,
    mine: Holder,
    *,
    make: Callable[[], Overseer],
    ask: Ask,
    postman: Postman,
    now: Callable[[], Now],
    lost: Callable[[AlreadyRunning], None],
) -> Supervisor:
    """The tree, ready to run. ``make`` makes the desk's Overseer, anew after each crash."""
    root: Supervisor

    def desk() -> ActorRef:
        return root.ref("desk")

    def probes() -> Supervisor:
        return Supervisor(
            [
                ChildSpec(each.name, lambda each=each: Probe(each, ask, config.health_timeout, desk))  # type: ignore[misc]  # bound now
                for each in endpoints(config)
            ]
        )

    pools = {pool for provider in config.providers.values() for pool in provider.pools}
    looks = [ChildSpec("pools", lambda: PoolLook(pools, database, desk))] if pools else []
    root = Supervisor(
        [
            ChildSpec("desk", lambda: Desk(make, now, lambda: root.ref("notifier")), shutdown=150),
            ChildSpec("notifier", lambda: Notifier(postman)),
            *looks,
            ChildSpec("switches", lambda: SwitchLook(database, desk)),
            ChildSpec("presence", lambda: Presence(mine, database, now, lost)),
            ChildSpec("probes", probes),
        ],
        strategy="rest_for_one",
        id="overseer",
    )
    return root
