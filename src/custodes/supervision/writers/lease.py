"""The writers of all processes in one line: who holds a scope, and who waits for which.

Each turn of mutable work has a place in the project's line from before it is admitted until nothing of it
is left. It waits for what holds a scope that conflicts with its own, and for those that conflict and came
before it. All places of a turn are taken at once, and nobody waits for a later number: so no two can wait
for each other.

A process that waits holds nothing, so one that no longer tells that it lives is passed over. One that
holds is waited for whatever its heartbeat: it may have been stopped half way through a file. Only proof
that it and everything of its run are gone ends its lease, or an operator.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import Owner, pid_space, proven_dead
from custodes.supervision.writers.scopes import Scope, blocks

HEARTBEAT_S = 5.0
"""How often a process says that it still lives, in seconds."""
MISSED_S = 3 * HEARTBEAT_S
"""After so many seconds without that, one that waits is passed over."""


class ScopeLease(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the line. ``number`` is where it stands while it waits, and its fencing number once it is
    ``held``: both come from one count that only rises, so a later holder has the higher one.

    ``parent_run`` is the nearest run above, of those that it was started under, which holds a scope itself.
    ``since`` is in wall seconds. ``left`` names what its run could not be proven to have ended.
    """

    id: str
    run_id: str
    parent_run: str | None = None
    number: int
    held: bool
    scope: Scope
    owner: Owner
    since: float
    beat: Now
    left: tuple[str, ...] = ()

    def silent(self, now: Now) -> float:
        """Seconds since its last heartbeat; endless where that was before this boot."""
        return now.uptime - self.beat.uptime if self.beat.boot == now.boot else float("inf")


def orphaned(lease: ScopeLease) -> bool:
    """Whether nobody will end this lease in the ordinary way: its owner is proven dead, or has ended its
    turn and left something running. Asks the system; some microseconds."""
    # What is left can be looked for only where its pids mean something.
    return proven_dead(lease.owner) or (bool(lease.left) and lease.owner.space == pid_space())


def in_the_way(lease: ScopeLease, line: Collection[ScopeLease], now: Now) -> tuple[ScopeLease, ...]:
    """What this lease has to wait for; empty where it may be held (`scopes.blocks`)."""
    return tuple(
        other
        for other in line
        if other.id != lease.id
        and blocks(
            other,
            lease,
            ahead=other.number < lease.number and other.silent(now) < MISSED_S,
            line=line,
        )
    )
