"""One overseer for a project: who it is, so that a second one goes, and a dead one holds nothing up.

It holds the project for as long as it runs; a tick, and a switch by hand, for a moment, which whoever is to
hold it for long waits out.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from custodes.store import Connection, Database, StoreDamaged, StoreError, json_text
from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import Owner, pid_space, proven_dead, this_process
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

logger = logging.getLogger("custodes.overseer")

BEAT_S = 30.0
"""How often an overseer says that it still runs, in seconds."""
SILENT_S = 10 * BEAT_S
"""Of an overseer whose process cannot be looked for from here (another container's), so long a silence is
taken for its end. Two at once would do no harm that lasts: incidents are single and switches look first."""
SWITCH_S = 600.0
"""The most that a switch by hand takes, in seconds: its reading, the switch with its proof and what a profile
had begun before are each bounded well below. One that still holds the project then could not let it go."""
MOMENT_S = 120.0
"""How long an overseer that begins waits for a tick, or a switch by hand, to end, in seconds."""
_LOOK_S = 0.2

Errand = Literal["overseer", "tick", "switch"]
_AT_WORK: dict[Errand, str] = {"tick": "a tick of the overseer", "switch": "a switch by hand"}


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """``since`` in wall seconds; ``errand`` is what it holds the project for. ``id`` tells two in one process
    apart."""

    id: str
    owner: Owner
    since: float
    beat: Now
    errand: Errand = "overseer"

    def gone(self, now: Now) -> bool:
        """Whether it holds the project no longer."""
        if proven_dead(self.owner):
            return True
        elsewhere = self.owner.space != pid_space()
        silent = now.uptime - self.beat.uptime if self.beat.boot == now.boot else SWITCH_S
        return (elsewhere and silent >= SILENT_S) or (self.errand == "switch" and silent >= SWITCH_S)


class AlreadyRunning(Exception):  # noqa: N818 - named for what is so, as the store's are
    """Another one has the project: ``holder``. ``pid`` is its process."""

    def __init__(self, holder: Holder, now: Now) -> None:
        self.holder = holder
        self.pid: int = holder.owner.pid
        if (at_work := _AT_WORK.get(holder.errand)) is not None:
            super().__init__(f"{at_work} is at work here (pid {self.pid}); ask again once it has ended")
            return
        minutes = max(0.0, now.wall - holder.since) / 60
        super().__init__(
            f"an overseer already runs here (pid {self.pid}, for {minutes:.0f} min); one is enough"
        )


@asynccontextmanager
async def holding(
    project: Path, now: Callable[[], Now], errand: Errand = "overseer"
) -> AsyncIterator[tuple[Database, Holder]]:
    """The project's database, with the project held for as long as the block; where that cannot be written at
    its end, for as long as the process, or until a switch by hand is over for sure.

    An overseer waits for whoever holds it for a moment only.

    :raises AlreadyRunning: another one has it.
    :raises StoreError: the database cannot be used.
    """
    path = project / DATABASE
    try:
        database = await Database.open(path, MIGRATIONS)
    except StoreDamaged as error:
        # Nobody stands beside an overseer to start it again. It was set aside, and all is looked at anew.
        logger.error("%s", error)  # noqa: TRY400 - the error says it all
        database = await Database.open(path, MIGRATIONS)
    try:
        mine = await _taken(database, now, errand)
        try:
            yield database, mine
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await leave(database, mine)
                except StoreError as error:  # the block ends as it would have
                    until = "the switch is over for sure" if errand == "switch" else "this process ends"
                    logger.warning("the project is held until %s: %s", until, error)
    finally:
        await database.aclose()


async def _taken(database: Database, now: Callable[[], Now], errand: Errand) -> Holder:
    deadline = anyio.current_time() + (MOMENT_S if errand == "overseer" else 0.0)
    told = False
    while True:
        try:
            return await take(database, now(), errand=errand)
        except AlreadyRunning as error:
            if error.holder.errand == "overseer" or anyio.current_time() >= deadline:
                raise
            if not told:
                logger.warning("waiting: %s", error)
                told = True
        await anyio.sleep(_LOOK_S)


async def take(database: Database, now: Now, me: Owner | None = None, errand: Errand = "overseer") -> Holder:
    """Hold the project. :raises AlreadyRunning: another one does."""
    owner = me or this_process()
    mine = Holder(id=uuid.uuid4().hex, owner=owner, since=now.wall, beat=now, errand=errand)

    async def fold(connection: Connection) -> Holder | None:
        found = await look(connection)
        if found is not None and not found.gone(now):
            return found
        await _put(connection, mine)
        return None

    other = await database.write(fold, wait_s=5.0)
    if other is not None:
        raise AlreadyRunning(other, now)
    return mine


async def beat(database: Database, mine: Holder, now: Now) -> None:
    """Say that it still runs. :raises AlreadyRunning: another one took the project over."""

    async def fold(connection: Connection) -> Holder | None:
        found = await look(connection)
        if found is not None and found.id != mine.id:
            return found
        await _put(connection, msgspec.structs.replace(mine, beat=now))
        return None

    other = await database.write(fold, wait_s=5.0)
    if other is not None:
        raise AlreadyRunning(other, now)


async def leave(database: Database, mine: Holder) -> None:
    """Let the project go, where it is still held."""

    async def fold(connection: Connection) -> None:
        found = await look(connection)
        if found is not None and found.id == mine.id:
            await connection.execute_fetchall("DELETE FROM overseer_holder")

    await database.write(fold, wait_s=5.0)


async def look(connection: Connection) -> Holder | None:
    """Who holds the project, dead or alive; None also where the row is torn, which then holds nothing."""
    rows = list(await connection.execute_fetchall("SELECT body FROM overseer_holder"))
    try:
        return msgspec.json.decode(rows[0][0], type=Holder) if rows else None
    except msgspec.DecodeError:
        return None


async def _put(connection: Connection, holder: Holder) -> None:
    body = json_text(holder)
    await connection.execute_fetchall("INSERT OR REPLACE INTO overseer_holder VALUES (1, ?)", (body,))
