"""What each profile is set to, and its moves.

A move is three steps: the intent on the disk, the switch with its proof, and one commit of the profile, the
incident and its notices. Whoever finds an intent ends it first, so that a killed overseer's successor goes on
from there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio
import msgspec

from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.overseer import tables
from custodes.overseer.config import Config
from custodes.overseer.decide import ProfileRecord, taken_up
from custodes.overseer.incident import Incident
from custodes.overseer.notice import notices_for
from custodes.overseer.tables import Intent
from custodes.overseer.watch import Watch
from custodes.store import Connection, Database, StoreError
from custodes.supervision.record.clock import Now, after

logger = logging.getLogger("custodes.overseer")

RETRY_S = 60.0
"""After a switch that failed it is tried again in so many seconds, doubled each time up to `RETRY_MOST_S`."""
RETRY_MOST_S = 3_600.0
WRITE_S = 5.0
"""How long a commit may wait for other writers of the file, in seconds."""


class Profiles:
    """Of two moves at once each must be of another profile.

    :param actuator: the ProfileSwitch of a name. :raises SwitchError: there is none.
    :param tell: told what happened (``moved``, …) with its incidents, once they are on the disk.
    """

    def __init__(
        self,
        config: Config,
        database: Database,
        actuator: Callable[[str], ProfileSwitch],
        now: Callable[[], Now],
        tell: Callable[[str, Iterable[Incident]], Awaitable[None]],
    ) -> None:
        self.records: dict[str, ProfileRecord] = {}
        self.settings: dict[str, ProfileSetting] = {}
        """As they were last read."""
        self.begun: dict[str, Intent] = {}
        """Moves whose end is not on the disk yet."""
        self._config = config
        self._database = database
        self._actuator = actuator
        self._now = now
        self._tell = tell
        self._saved: dict[str, ProfileRecord] = {}
        """The records as they are on the disk."""

    async def load(self) -> None:
        """What is known of them. :raises StoreError: the database cannot be used."""
        known = await self._database.read(tables.load_records)
        self._saved = known
        self.records = {
            name: known.get(name) or ProfileRecord(profile=name) for name in self._config.fallback_matrix
        }
        self.begun = await self._database.read(tables.load_intents)

    async def read(self, names: Iterable[str], watches: Mapping[str, Watch]) -> None:
        """Look what they are set to, having ended what was begun of them."""
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(self._read, name, watches)

    async def _read(self, name: str, watches: Mapping[str, Watch]) -> None:
        if name in self.begun and not self._config.dry_run:
            await self._end_begun(self.begun[name])
        record, row = self.records[name], self._config.fallback_matrix[name]
        if name in self.begun:
            why = record.failed or "a switch was interrupted, and its end is not known yet"
            self.records[name] = msgspec.structs.replace(record, problem=why)
            return
        try:
            read = await self._actuator(row.actuator).read(name)
        except SwitchError as error:
            self.records[name] = msgspec.structs.replace(record, problem=str(error))
        else:
            self.settings[name] = read
            self.records[name] = taken_up(record, read, row, self._config, watches)

    async def move(self, intent: Intent) -> None:
        """Switch a profile, with the intent on the disk before it and all that comes of it after it.

        Cancelled, or killed, it is ended by whoever reads the profile next.

        :raises SwitchError: it was not switched; ``changed`` says that a person has to look.
        :raises StoreError: before the switch, and nothing has changed; or after it, and the next reading
            makes up for it.
        """
        name = intent.profile
        try:
            actuator = self._actuator(self._config.fallback_matrix[name].actuator)
            await self._database.write(lambda c: tables.save_intent(c, intent), WRITE_S)
            self.begun[name] = intent
            await actuator.switch(name, intent.new, intent.old)
        except SwitchError as error:
            if not error.changed and name in self.begun:
                await self._drop_logged(name)
            raise
        await self.stands(intent, "moved")

    async def stands(self, intent: Intent, event: str) -> None:
        """The profile is proven to stand as it was wanted: that, the incident and its notices in one commit.

        :raises StoreError: it could not be kept.
        """
        record = msgspec.structs.replace(
            self.records[intent.profile],
            choice=intent.to,
            cooldown=after(self._config.cooldown_s, self._now()),
            held=intent.to if intent.held else None,
            hand=str(intent.to) if intent.held else "",
            failed="",
            failures=0,
            retry=None,
        )

        async def fold(connection: Connection) -> list[Incident]:
            await tables.delete_intent(connection, intent.profile)
            await tables.save_records(connection, [record])
            written = await tables.save_incidents(connection, [intent.incident] if intent.incident else [])
            await tables.add_notices(connection, notices_for(self._config, event, written))
            return written

        written = await self._database.write(fold, WRITE_S)
        self.begun.pop(intent.profile, None)
        self.records[intent.profile] = record
        self.saved([record])
        await self._tell(event, written)

    def unsaved(self) -> list[ProfileRecord]:
        """The records that are on the disk as they were before."""
        return [record for name, record in self.records.items() if self._saved.get(name) != record]

    def saved(self, records: Iterable[ProfileRecord]) -> None:
        self._saved |= {record.profile: record for record in records}

    def failed(self, name: str, error: SwitchError) -> None:
        """It could not be moved, and is tried again ever less often."""
        record = self.records[name]
        failures = record.failures + 1
        wait = min(RETRY_S * 2.0 ** min(failures - 1, 16), RETRY_MOST_S)
        self.records[name] = msgspec.structs.replace(
            record, failed=str(error), failures=failures, retry=after(wait, self._now())
        )

    def forget_failure(self, name: str) -> None:
        """A switch that failed is wanted no more."""
        if self.records[name].failed:
            self.records[name] = msgspec.structs.replace(
                self.records[name], failed="", failures=0, retry=None
            )

    async def _end_begun(self, intent: Intent) -> None:
        """A switch whose end nobody saw: complete it, or see that it was rolled back."""
        name = intent.profile
        try:
            actuator = self._actuator(self._config.fallback_matrix[name].actuator)
            await actuator.recover(name)
            read = await actuator.read(name)
            if not read.holds(intent.new) and _between(read, intent.old, intent.new):
                await actuator.switch(name, intent.new, read)
                read = intent.new
            if read.holds(intent.new):
                await self.stands(intent, "moved")
                return
            logger.warning(
                "%s: a switch to %s was interrupted and is undone; it is %s", name, intent.to, read
            )
            await self._drop(name)
        except SwitchError as error:
            self.records[name] = msgspec.structs.replace(self.records[name], failed=str(error))
        except StoreError as error:
            logger.warning("%s: the end of its switch is not on the disk yet: %s", name, error)

    async def _drop_logged(self, name: str) -> None:
        try:
            await self._drop(name)
        except StoreError as error:
            logger.warning("%s: the end of its switch is not on the disk yet: %s", name, error)

    async def _drop(self, name: str) -> None:
        await self._database.write(lambda c: tables.delete_intent(c, name), WRITE_S)
        self.begun.pop(name, None)


def _between(read: ProfileSetting, old: ProfileSetting, new: ProfileSetting) -> bool:
    """Whether it was left half way: some of the old, some of the new, and nothing of anybody else's."""
    if read.holds(old):
        return False
    fields = ((getattr(each, name) for each in (read, old, new)) for name in ProfileSetting.__struct_fields__)
    return all(here in (was, will) or (was is None and will is None) for here, was, will in fields)
