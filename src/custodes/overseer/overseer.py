"""The one executor of the rules: what is heard becomes watches, decisions, switches, incidents and notices.

Not safe for concurrent calls: in the tree one actor makes them, a tick makes them one after the other.
Everything it knows is in the project's database before it is acted on, so a killed overseer's successor goes
on from there. A switch is three steps: the intent on the disk, the switch with its proof, and one commit of
the profile, the incident and its notices; whoever finds an intent ends it first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import anyio
import msgspec

from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.overseer import tables
from custodes.overseer.config import Config
from custodes.overseer.decide import Decision, ProfileRecord, decide, taken_up
from custodes.overseer.endpoint import Endpoint
from custodes.overseer.incident import Incident, of_decision
from custodes.overseer.journal import Journal
from custodes.overseer.ledger import reconcile, resolved
from custodes.overseer.notice import notices_for
from custodes.overseer.pools import open_pools
from custodes.overseer.probe import Answer, judge
from custodes.overseer.tables import Intent
from custodes.overseer.watch import Watch, advance, healed_in_work, met_limit
from custodes.store import Connection, Database, StoreError
from custodes.supervision.pools.breaker import Pool
from custodes.supervision.record.clock import Now, after

logger = logging.getLogger("custodes.overseer")

RETRY_S = 60.0
"""After a switch that failed it is tried again in so many seconds, doubled each time up to `RETRY_MOST_S`."""
RETRY_MOST_S = 3_600.0
WRITE_S = 5.0
"""How long a commit may wait for other writers of the file, in seconds."""

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
        self.records: dict[str, ProfileRecord] = {}
        self._database = database
        self._actuator = actuator
        self._journal = journal
        self._now = now
        self._observer = observer
        self._begun: dict[str, Intent] = {}
        """Switches whose end is not on the disk yet, by profile."""

    async def start(self) -> None:
        """Read what is known. What a killed overseer began is ended by the first :meth:`act`.

        :raises StoreError: the database cannot be used.
        """
        database = self._database
        watches = await database.read(tables.load_watches)
        records = await database.read(tables.load_records)
        self.watches = {name: watches.get(name) or Watch(provider=name) for name in self.config.providers}
        self.records = {
            name: records.get(name) or ProfileRecord(profile=name) for name in self.config.fallback_matrix
        }
        self._begun = await database.read(tables.load_intents)

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
        self.watches |= changed

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
            self.watches |= changed
        return bool(changed)

    async def act(self) -> tuple[Decision, ...]:
        """Look at every profile, decide, and do what was decided. In a dry run nothing is changed or opened.

        :raises StoreError: the database cannot be used; what was not kept is decided again.
        """
        before = dict(self.records)
        await self._read_profiles()
        decisions = self.decisions()
        if self.config.dry_run:
            return decisions
        active = {incident.cause: incident for incident in await self._database.read(tables.active_incidents)}
        async with anyio.create_task_group() as group:
            for decision in decisions:
                if decision.to is not None:
                    group.start_soon(self._switch, decision, active)
                elif decision.kind != "problem":
                    self._forget_failure(decision.profile)
        stayed = [decision for decision in decisions if decision.to is None]
        failed = [
            Decision(profile=name, action="alert_only", kind="problem", why=self.records[name].failed)
            for name in (decision.profile for decision in decisions if decision.to is not None)
            if self.records[name].failed
        ]
        await self._settle((*stayed, *failed), before)
        return decisions

    def decisions(self) -> tuple[Decision, ...]:
        """What would be done with each profile, as it was last read."""
        now = self._now()
        return tuple(
            decide(self.records[name], row, self.config, self.watches, now)
            for name, row in self.config.fallback_matrix.items()
        )

    # -- Profiles

    async def _read_profiles(self) -> None:
        async with anyio.create_task_group() as group:
            for name in self.config.fallback_matrix:
                group.start_soon(self._read_profile, name)

    async def _read_profile(self, name: str) -> None:
        row, record = self.config.fallback_matrix[name], self.records[name]
        if name in self._begun and not self.config.dry_run:
            await self._end_begun(self._begun[name])
            record = self.records[name]
        if name in self._begun:
            why = record.failed or "a switch was interrupted, and its end is not known yet"
            self.records[name] = msgspec.structs.replace(record, problem=why)
            return
        try:
            read = await self._actuator(row.actuator).read(name)
        except SwitchError as error:
            self.records[name] = msgspec.structs.replace(record, problem=str(error))
        else:
            self.records[name] = taken_up(record, read, row, self.config, self.watches)

    async def _switch(self, decision: Decision, active: Mapping[str, Incident]) -> None:
        """Move one profile. Whatever goes wrong is its own and no other profile's."""
        assert decision.to is not None and decision.at is not None  # noqa: S101, PT018 - what a move is
        name, config = decision.profile, self.config
        watch = self.watches.get(decision.about.provider) if decision.about else None
        incident = of_decision(decision, watch, self._now())
        if decision.action == "switch_back" and decision.about == decision.to:
            incident = resolved(incident, "overseer", self._now())  # a record of the way back, no outage
        elif (known := active.get(incident.cause)) is not None:
            fields = {field: getattr(incident, field) for field in _MOVED}
            incident = msgspec.structs.replace(known, **fields)
        intent = Intent(
            profile=name,
            old=config.setting(name, decision.at),
            new=config.setting(name, decision.to),
            to=decision.to,
            incident=incident,
        )
        try:
            actuator = self._actuator(config.fallback_matrix[name].actuator)
            await self._database.write(lambda c: tables.save_intent(c, intent), WRITE_S)
            self._begun[name] = intent
            await actuator.switch(name, intent.new, intent.old)
            await self._moved(intent)
        except SwitchError as error:
            await self._failed(name, error)
        except StoreError as error:
            # Before the switch nothing has changed; after it the intent is ended by the next round.
            logger.warning("%s: the switch to %s is not on the disk yet: %s", name, decision.to, error)

    async def _moved(self, intent: Intent) -> None:
        """The switch is proven: profile, incident and notices in one commit."""
        record = msgspec.structs.replace(
            self.records[intent.profile],
            choice=intent.to,
            cooldown=after(self.config.cooldown_s, self._now()),
            hand="",
            failed="",
            failures=0,
            retry=None,
        )

        async def fold(connection: Connection) -> list[Incident]:
            await tables.delete_intent(connection, intent.profile)
            await tables.save_records(connection, [record])
            written = await tables.save_incidents(connection, [intent.incident])
            await tables.add_notices(connection, notices_for(self.config, "moved", written))
            return written

        written = await self._database.write(fold, WRITE_S)
        self._begun.pop(intent.profile, None)
        self.records[intent.profile] = record
        await self._log("moved", written)

    async def _failed(self, name: str, error: SwitchError) -> None:
        logger.error("%s", error)
        record = self.records[name]
        failures = record.failures + 1
        wait = min(RETRY_S * 2.0 ** min(failures - 1, 16), RETRY_MOST_S)
        self.records[name] = msgspec.structs.replace(
            record, failed=str(error), failures=failures, retry=after(wait, self._now())
        )
        if not error.changed and name in self._begun:
            try:
                await self._drop(name)
            except StoreError as problem:
                logger.warning("%s: the end of its switch is not on the disk yet: %s", name, problem)

    def _forget_failure(self, name: str) -> None:
        """A switch that failed is wanted no more."""
        if self.records[name].failed:
            self.records[name] = msgspec.structs.replace(
                self.records[name], failed="", failures=0, retry=None
            )

    async def _end_begun(self, intent: Intent) -> None:
        """A switch whose end nobody saw: complete it, or see that it was rolled back."""
        name = intent.profile
        try:
            actuator = self._actuator(self.config.fallback_matrix[name].actuator)
            await actuator.recover(name)
            read = await actuator.read(name)
            if not read.holds(intent.new) and _between(read, intent.old, intent.new):
                await actuator.switch(name, intent.new, read)
                read = intent.new
            if read.holds(intent.new):
                await self._moved(intent)
                return
            logger.warning(
                "%s: a switch to %s was interrupted and is undone; it is %s", name, intent.to, read
            )
            await self._drop(name)
        except SwitchError as error:
            self.records[name] = msgspec.structs.replace(self.records[name], failed=str(error))
        except StoreError as error:
            logger.warning("%s: the end of its switch is not on the disk yet: %s", name, error)

    async def _drop(self, name: str) -> None:
        await self._database.write(lambda c: tables.delete_intent(c, name), WRITE_S)
        self._begun.pop(name, None)

    # -- Incidents

    async def _settle(self, decisions: Iterable[Decision], before: Mapping[str, ProfileRecord]) -> None:
        """Bring the incidents in line with how things stand, and keep what was learned of the profiles."""
        now = self._now()
        entries = reconcile(
            await self._database.read(tables.active_incidents),
            decisions,
            self.records,
            self.watches,
            self.config,
            now,
        )
        records = [record for name, record in self.records.items() if before.get(name) != record]
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
        await self._log("opened", opened)
        await self._log("resolved", entries.resolved)

    async def _log(self, event: str, incidents: Iterable[Incident]) -> None:
        for incident in incidents:
            if self.config.notify.log:
                await self._journal.write(event, incident, self._now())
            if self._observer is not None:
                self._observer(event, incident)


def _between(read: ProfileSetting, old: ProfileSetting, new: ProfileSetting) -> bool:
    """Whether it was left half way: some of the old, some of the new, and nothing of anybody else's."""
    if read.holds(old):
        return False
    fields = ((getattr(each, name) for each in (read, old, new)) for name in ProfileSetting.__struct_fields__)
    return all(here in (was, will) or (was is None and will is None) for here, was, will in fields)


_MOVED = ("action", "error_code", "old_model", "new_model", "detail", "recovery_eta")
"""What a switch changes of an incident that was open before it."""
