"""The running tree of one host: root over store, health, leases, the conversations and their owner.

``rest_for_one``: a crash of the store, the health or the lease actor restarts it and what came after it,
from the file; no ticket and no lease is lost, since they are rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from custodes.actors import Actor, ActorError, ChildSpec, ContextHooks, Message, StartFailed, Supervisor
from custodes.policy.history import Past
from custodes.policy.settings import Settings
from custodes.store import Database, StoreClosed, StoreError
from custodes.supervision.asks.owner import OwnerActor
from custodes.supervision.asks.permission_asks import Asks
from custodes.supervision.dispatching.job import Emit, Services
from custodes.supervision.dispatching.slots import Slots
from custodes.supervision.live import Live
from custodes.supervision.outlook import Outlook
from custodes.supervision.pools.health import HealthActor
from custodes.supervision.record.clock import now
from custodes.supervision.record.history import recorded
from custodes.supervision.record.recovery import close_dead_owners
from custodes.supervision.record.schema import DATABASE, MIGRATIONS
from custodes.supervision.writers.lease_actor import HeartActor, LeaseActor
from custodes.supervision.writers.leases import Leases
from custodes.telemetry import attach, capture, current_tracer

if TYPE_CHECKING:  # each needs its tree
    from custodes.supervision.conversation import Conversation

logger = logging.getLogger("custodes.supervision")

HISTORY_S = 60.0
"""How long what was read of past attempts is good for, in seconds: one more of thousands changes little."""


class StoreActor(Actor):
    """Owns the project's database: opened and recovered before anything else starts, closed last."""

    def __init__(self, project: Path) -> None:
        self._path = project / DATABASE
        self.database: Database | None = None

    async def on_start(self) -> None:
        database = await Database.open(self._path, MIGRATIONS)
        try:
            await close_dead_owners(database, now())
        except BaseException:
            await database.aclose()  # what has not started is not stopped
            raise
        self.database = database

    async def on_stop(self, reason: str) -> None:  # noqa: ARG002 - closed whatever the reason
        if self.database is not None:
            await self.database.aclose()


class Tree:
    """Made for one run of one host."""

    services: Services

    def __init__(
        self,
        project: Path,
        settings: Settings,
        emit: Emit,
        conversations: Callable[[], Collection[Conversation]],
    ) -> None:
        self._project = project
        self._settings = settings
        self._emit = emit
        self._live = Live(conversations=conversations, nests={}, asks=Asks(self.database, settings, emit))
        self._store: StoreActor | None = None
        self._owner: OwnerActor | None = None
        self._owed_health: list[Message[Any]] = []
        self._owed_leases: list[Message[Any]] = []
        self._history = Past()
        self._history_until = float("-inf")
        self.root: Supervisor = Supervisor(
            (
                ChildSpec("store", self._new_store, shutdown=10),
                ChildSpec("health", self._new_health, shutdown=10),
                ChildSpec("leases", self._new_leases, shutdown=10),
                ChildSpec("heart", lambda: HeartActor(lambda: self.root.ref("leases"))),
                ChildSpec("conversations", Supervisor),
                ChildSpec("owner", self._new_owner),
            ),
            strategy="rest_for_one",
            context=ContextHooks(capture, attach),
            id="custodes",
        )

    async def start(self, group: TaskGroup, outlook: Outlook) -> None:
        """Run the root in the host's group. What fails later fails upward, into that group.

        :raises SettingsError: the settings cannot be read; nothing was started.
        :raises StoreError: the store cannot be opened; nothing is left running.
        """
        policy = self._settings.read().policy
        try:
            await group.start(self.root.run)
        except StartFailed as error:
            cause = error.__cause__
            while isinstance(cause, StartFailed):
                cause = cause.__cause__
            if isinstance(cause, StoreError):
                raise cause from error
            raise
        self.services = Services(
            project=self._project,
            settings=self._settings,
            outlook=outlook,
            database=self.database,
            health=self.root.ref("health"),
            leases=Leases(self.root.ref("leases"), self.database),
            asks=self._live.asks,
            slots=Slots(policy.max_parallel),
            alive=Slots(policy.max_live),
            nests=self._live.nests,
            tracer=current_tracer(),
            emit=self._emit,
        )

    def watch(self) -> None:
        """A child is started: what other processes ask of it is looked for until none runs."""
        if self._owner is not None and not self._owner.watching:
            with suppress(ActorError):  # it restarts, and sees for itself that a child runs
                self._owner.watch()

    async def conversations(self) -> Supervisor:
        """The supervisor of all conversations, which is another one after a restart: that is waited for.

        :raises ActorError: the tree has stopped for good.
        """
        return await self.root.running_supervisor("conversations")

    async def history(self) -> Past:
        """What past attempts say, at most :data:`HISTORY_S` old; nothing where the store cannot be asked."""
        database = self._store.database if self._store is not None else None
        if database is not None and anyio.current_time() >= self._history_until:
            try:
                self._history = Past(await database.read(recorded))
            except StoreError as error:
                logger.warning("routing goes without its history: %s", error)
            self._history_until = anyio.current_time() + HISTORY_S
        return self._history

    def _new_store(self) -> StoreActor:
        self._store = StoreActor(self._project)
        return self._store

    def _new_owner(self) -> OwnerActor:
        self._owner = OwnerActor(self.database, self._live)
        return self._owner

    def _new_leases(self) -> LeaseActor:
        return LeaseActor(self.database, now, lambda: self.root.ref("heart"), owed=self._owed_leases)

    def _new_health(self) -> HealthActor:
        return HealthActor(self.database, now, owed=self._owed_health)

    def database(self) -> Database:
        """The open file, for what is no actor: another one after a restart.

        :raises StoreClosed: it is being opened anew, or the tree has ended.
        """
        if self._store is None or self._store.database is None:
            raise StoreClosed(self._project / DATABASE)
        return self._store.database
