"""The scopes of a project straight from its file, for surfaces that start no tree."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from custodes.store import Connection
from custodes.supervision.record import records
from custodes.supervision.record.audit import write_down
from custodes.supervision.record.clock import Now, now, whole_seconds
from custodes.supervision.record.owner_identity import Owner, pid_space, proven_dead
from custodes.supervision.record.project_file import ProjectFile, overriding
from custodes.supervision.record.recovery import close_as_unknown
from custodes.supervision.writers.lease import ScopeLease
from custodes.supervision.writers.lease_table import delete_leases, load_leases

OwnerState = Literal["alive", "dead", "out of sight"]


class ScopeView(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the line of writers. ``number`` is the fencing number of one that is held.

    ``owner`` is ``out of sight`` where it runs in another pid namespace. ``since`` is in wall seconds,
    ``silent_s`` the seconds since its last heartbeat (None: that was before this boot). ``left`` names what
    its run could not be proven to have ended.
    """

    number: int
    state: Literal["held", "waiting"]
    places: tuple[str, ...]
    run_id: str
    parent_run: str | None
    pid: int
    owner: OwnerState
    since: float
    silent_s: int | None
    left: tuple[str, ...]

    @property
    def overridden(self) -> str:
        """What is overridden by releasing it."""
        left = f"; it left {', '.join(self.left)}" if self.left else ""
        match self.owner:
            case "alive":
                return f"its owner (pid {self.pid}) is alive and may still write there{left}"
            case "dead":
                return f"its owner (pid {self.pid}) is dead, but nobody has proven that its run is gone{left}"
            case "out of sight":
                return f"its owner (pid {self.pid} of another pid namespace) cannot be seen from here{left}"


async def read_scopes(project: Path) -> tuple[ScopeView, ...]:
    """Who holds a scope and who waits for one, in order. Makes, migrates and changes nothing.

    :raises StoreError: the file cannot be read.
    """
    async with ProjectFile(project) as file:
        return tuple(_view(lease, now()) for lease in await file.look(load_leases, list[ScopeLease]()))


async def release_in_file(project: Path, target: str, by: str) -> tuple[ScopeView, ...]:
    """End the held leases of a run (or the one of this fencing number), whoever holds them, audited.

    The holder is fenced off: its open row is closed as ``unknown`` in the same commit, and what it brings
    later, rows and evidence, is refused. What it started runs on, and may still write.

    :returns: what was overridden; empty where nothing of that name was held.
    :raises StoreError: the file cannot be written; nothing was released.
    :raises AuditError: it was done, and could not be written down.
    """

    async def release(connection: Connection) -> list[ScopeLease]:
        line = await load_leases(connection)
        ended = [lease for lease in line if lease.held and target in (lease.run_id, str(lease.number))]
        await delete_leases(connection, [lease.id for lease in ended])
        runs = {lease.run_id for lease in ended}
        rows = [row for row in await records.running(connection) if row.run_id in runs]
        await close_as_unknown(connection, rows, "its scope was released by an operator", now())
        return ended

    async with overriding(project) as database:
        if database is None:
            return ()
        views = tuple(_view(lease, now()) for lease in await database.write(release))
    detail = tuple(f"{', '.join(view.places)} (number {view.number}): {view.overridden}" for view in views)
    await write_down(project, "scopes.release", target, by, now(), detail)
    return views


def _view(lease: ScopeLease, at: Now) -> ScopeView:
    return ScopeView(
        number=lease.number,
        state="held" if lease.held else "waiting",
        places=tuple(sorted(str(Path(*place.parts)) for place in lease.scope.places)),
        run_id=lease.run_id,
        parent_run=lease.parent_run,
        pid=lease.owner.pid,
        owner=_state(lease.owner),
        since=lease.since,
        silent_s=whole_seconds(lease.silent(at)) if lease.beat.boot == at.boot else None,
        left=lease.left,
    )


def _state(owner: Owner) -> OwnerState:
    if proven_dead(owner):
        return "dead"
    return "alive" if owner.space == pid_space() else "out of sight"
