"""The one executor of the rules: what is heard becomes watches, decisions, switches, incidents and notices.

Not safe for concurrent calls: in the tree one actor makes them, a tick makes them one after the other.
Everything it knows is in the project's database before it is acted on, so a killed overseer's successor goes
on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import anyio
import msgspec

from custodes.adapters.port import ProfileSwitch, SwitchError
from custodes.overseer import by_hand, tables
from custodes.overseer.by_hand import Switched, SwitchOrder, SwitchRefused
from custodes.overseer.config import Config
from custodes.overseer.decide import Decision, ProfileRecord, decide
from custodes.overseer.endpoint import Endpoint
from custodes.overseer.incident import Incident, cause_of, of_decision
from custodes.overseer.journal import Journal
from custodes.overseer.ledger import reconcile, resolved
from custodes.overseer.notice import notices_for
from custodes.overseer.pools import open_pools
from custodes.overseer.probe import Answer, judge
from custodes.overseer.profiles import WRITE_S, Profiles
from custodes.overseer.tables import Intent
from custodes.overseer.watch import Watch, advance, healed_in_work, met_limit
from custodes.store import Connection, Database, StoreError
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.record.clock import Now

logger = logging.getLogger("custodes.overseer")

Observer = Callable[[str, Incident], None]
"""Called with ``opened``, ``moved`` or ``resolved``; returns at once and never raises."""


class Overseer:
    """
    :param actuator: the ProfileSwitch of a name. :raises SwitchError: there is none.
    :param journal: the log of incidents, ``supervisor.log``.
    :param observer: told of every incident that changes, once it is on the disk.
    :param now: the moment, asked for at each step.
    """

    def __init__(
        self,
        config: Config,
        database: Database,
        actuator: Callable[[str], ProfileSwitch],
        journal: Journal,
        now: Callable[[], Now],
        observer: Observer | None = None,
    ) -> None:
        self.config = config
        self.watches: dict[str, Watch] = {}
        self._database = database
        self._profiles = Profiles(config, database, actuator, now, self._log)
        self._journal = journal
        self._now = now
        self._observer = observer
        self._unread: set[str] = set()
        """Profiles to be looked at by the next :meth:`act`: something that concerns them was heard."""

    async def start(self) -> None:
        """Read what is known. What a killed overseer began is ended by the first :meth:`act`.

        :raises StoreError: the database cannot be used.
        """
        watches = await self._database.read(tables.load_watches)
        self.watches = {name: watches.get(name) or Watch(provider=name) for name in self.config.providers}
        await self._profiles.load()
        self._unread = set(self.config.fallback_matrix)

    @property
    def records(self) -> Mapping[str, ProfileRecord]:
        """What is remembered of each profile."""
        return self._profiles.records

    @property
    def ready(self) -> bool:
        """Whether every provider was asked once: to decide before would pass over those that were not."""
        return all(watch.checked is not None for watch in self.watches.values())

    async def hear(self, endpoint: Endpoint, answer: Answer) -> None:
        """What an endpoint answered, for each provider behind it.

        :raises StoreError: it could not be kept; nothing was changed.
        """
        now, config = self._now(), self.config
        others = [f"{name}/{model}" for name in endpoint.providers for model in config.models_of(name)]
        changed: dict[str, Watch] = {}
        waits: dict[str, int] = {}
        for name in endpoint.providers:
            provider = config.providers[name]
            verdict = judge(name, provider, answer, now.wall, config.models_of(name), others)
            changed[name] = advance(self.watches[name], verdict, now, config)
            if verdict.kind == "limited" and verdict.wait is not None:
                waits |= dict.fromkeys(provider.pools, verdict.wait)

        async def fold(connection: Connection) -> None:
            await tables.save_watches(connection, changed.values())
            await open_pools(connection, waits, now)

        await self._database.write(fold, WRITE_S)
        self._heard(changed)

    async def see_pools(self, pools: Mapping[str, Pool]) -> bool:
        """What work met with: the pools as they stand. Whether a provider now stands differently.

        :raises StoreError: it could not be kept; nothing was changed.
        """
        now = self._now()
        changed: dict[str, Watch] = {}
        for name, provider in self.config.providers.items():
            watch = self.watches[name]
            sick = [pools[pool].deadline for pool in provider.pools if pool in pools]
            ahead = [each for each in sick if each is not None and each.remaining(now) > 0]
            if ahead:
                until = max(ahead, key=lambda each: each.remaining(now))
                # What a probe was told has opened the pool itself: the same wait is nothing new.
                known = watch.until.remaining(now) + 1 if watch.condition == "limited" and watch.until else 0
                then = met_limit(watch, until, now) if until.remaining(now) > known else watch
            else:
                then = watch if any(sick) else healed_in_work(watch)
            if then is not watch and then != watch:
                changed[name] = then
        if changed:
            await self._database.write(lambda c: tables.save_watches(c, changed.values()), WRITE_S)
            self._heard(changed)
        return bool(changed)

    def _heard(self, changed: Mapping[str, Watch]) -> None:
        self.watches |= changed
        for name, row in self.config.fallback_matrix.items():
            choice = self.records[name].choice
            if not changed.keys().isdisjoint(row.providers) or (choice and choice.provider in changed):
                self._unread.add(name)

    async def act(self) -> tuple[Decision, ...]:
        """Look at the profiles that something was heard for, decide on all, and do what was decided. In a dry
        run nothing is changed or opened.

        :raises StoreError: the database cannot be used; what was not kept is decided again.
        """
        decisions = await self._looked()
        if self.config.dry_run:
            return decisions
        active = await self._active()
        moves = [decision for decision in decisions if decision.to is not None]
        async with anyio.create_task_group() as group:
            for decision in decisions:
                if decision.to is not None:
                    group.start_soon(self._move, decision, active)
                elif decision.kind != "problem":
                    self._profiles.forget_failure(decision.profile)
        failed = [
            Decision(profile=name, action="alert_only", kind="problem", why=self.records[name].failed)
            for name in (move.profile for move in moves)
            if self.records[name].failed
        ]
        await self._settle((*(each for each in decisions if each.to is None), *failed))
        return decisions

    async def _looked(self) -> tuple[Decision, ...]:
        """The decisions, with every profile that is to move just read."""
        unread, read = self._unread, set[str]()
        while True:
            await self._profiles.read(unread, self.watches)
            read |= unread
            decisions = self.decisions()
            # A cooldown, or the wait before another try, may be over without anything being heard.
            unread = {decision.profile for decision in decisions if decision.to is not None} - read
            if not unread:
                self._unread = set(self._profiles.begun)
                return decisions

    def decisions(self) -> tuple[Decision, ...]:
        """What would be done with each profile, as it was last read."""
        now = self._now()
        return tuple(
            decide(self.records[name], row, self.config, self.watches, now)
            for name, row in self.config.fallback_matrix.items()
        )

    async def _move(self, decision: Decision, active: Mapping[str, Incident]) -> None:
        """Move one profile. Whatever goes wrong is its own and no other profile's."""
        assert decision.to is not None and decision.at is not None  # noqa: S101, PT018 - what a move is
        name, config = decision.profile, self.config
        watch = self.watches.get(decision.about.provider) if decision.about else None
        incident = of_decision(decision, watch, self._now())
        if decision.action == "switch_back" and decision.about == decision.to:
            incident = resolved(incident, "overseer", self._now())  # a record of the way back, no outage
        intent = Intent(
            profile=name,
            old=config.setting(name, decision.at),
            new=config.setting(name, decision.to),
            to=decision.to,
            incident=_known(incident, active),
        )
        try:
            await self._profiles.move(intent)
        except SwitchError as error:
            logger.error("%s", error)  # noqa: TRY400 - the error says it all
            self._profiles.failed(name, error)
        except StoreError as error:
            # Before the switch nothing has changed; after it the intent is ended by the next round.
            logger.warning("%s: the switch to %s is not on the disk yet: %s", name, decision.to, error)

    async def switch(self, order: SwitchOrder) -> Switched:
        """Switch a profile as a person asked, and leave it there for as long as they want it.

        :raises SwitchRefused: nothing was switched; it says why, and what would work.
        :raises StoreError: the database cannot be used, and it is not known to be switched; what was begun is
            ended by the next round.
        """
        row = by_hand.row_of(order, self.config)
        name, profiles = order.profile, self._profiles
        await profiles.read([name], self.watches)
        aim = by_hand.aim(order, self.records[name], self.config, self.watches)
        read = profiles.settings[name]
        done = by_hand.switched(order, self.records[name], read, aim, self.config)
        if not done.changed:
            return done
        active = await self._active()
        known = active.get(cause_of("hand", row.primary.provider, name))
        event, incident = by_hand.entry(done, row.primary, known, self._now())
        intent = Intent(
            profile=name,
            old=read,
            new=self.config.setting(name, aim.to),
            to=aim.to,
            incident=None if incident is None else _known(incident, active),
            held=aim.held,
        )
        try:
            if done.moved:
                await profiles.move(intent)
            else:
                await profiles.stands(intent, event)
        except SwitchError as error:
            raise SwitchRefused("failed", str(error)) from error
        try:
            await self._settle([each for each in self.decisions() if each.to is None])
        except StoreError as error:  # it is done all the same; the next round settles what it ended
            logger.warning("%s: what its switch ends is not on the disk yet: %s", name, error)
        return done

    # -- Incidents

    async def _active(self) -> dict[str, Incident]:
        return {each.cause: each for each in await self._database.read(tables.active_incidents)}

    async def _settle(self, decisions: Iterable[Decision]) -> None:
        """Bring the incidents in line with how things stand, and keep what was learned of the profiles."""
        now = self._now()
        active = (await self._active()).values()
        entries = reconcile(active, decisions, self.records, self.watches, self.config, now)
        records = self._profiles.unsaved()
        if not (records or entries.opened or entries.resolved or entries.updated):
            return

        async def fold(connection: Connection) -> list[Incident]:
            await tables.save_records(connection, records)
            await tables.save_incidents(connection, (*entries.resolved, *entries.updated))
            opened = await tables.save_incidents(connection, entries.opened)
            await tables.add_notices(connection, notices_for(self.config, "opened", opened))
            await tables.add_notices(connection, notices_for(self.config, "resolved", entries.resolved))
            return opened

        opened = await self._database.write(fold, WRITE_S)
        self._profiles.saved(records)
        await self._log("opened", opened)
        await self._log("resolved", entries.resolved)

    async def _log(self, event: str, incidents: Iterable[Incident]) -> None:
        for incident in incidents:
            if self.config.notify.log:
                await self._journal.write(event, incident, self._now())
            if self._observer is not None:
                self._observer(event, incident)


def _known(incident: Incident, active: Mapping[str, Incident]) -> Incident:
    """It, or the open one of its cause as this changes it. What is over already is a record of its own."""
    known = active.get(incident.cause)
    if known is None or incident.status == "resolved":
        return incident
    return msgspec.structs.replace(known, **{field: getattr(incident, field) for field in _MOVED})


_MOVED = ("action", "error_code", "old_model", "new_model", "detail", "recovery_eta", "by")
"""What a switch changes of an incident that was open before it."""
