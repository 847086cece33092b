"""What is said to the lease actor, and a batch of it folded in order over the line: no clock, no SQL."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from custodes.actors import Message
from custodes.store import StoreError
from custodes.supervision.record.clock import Now
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.writers.lease import HEARTBEAT_S, ScopeLease, in_the_way
from custodes.supervision.writers.scopes import Scope, reaches_outside


class Held(msgspec.Struct, frozen=True):
    """It is on the disk, with this fencing number."""

    number: int


class InTheWay(msgspec.Struct, frozen=True):
    """What holds the scope, or stands before this one in the line. Ask again; the place in it is kept.

    ``for_ever``: it reaches outside the scope of the work it was started by, which waits for it.
    """

    blocking: tuple[ScopeLease, ...]
    for_ever: bool = False


class Take(msgspec.Struct, Message[Held | InTheWay | StoreError], frozen=True, kw_only=True):
    """Ask for a scope, and again with the same ``id`` until it is held. Follow it with :class:`Release` in
    every path: a cancelled ask may have been granted."""

    run_id: str
    scope: Scope
    parent_run: str | None = None
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(12))


class Release(msgspec.Struct, Message[bool | StoreError], frozen=True, kw_only=True):
    """End a lease, or give up a place in the line. Where something was ``left`` running, it stays held and
    names that. Answers whether it was held until now; False: it was taken from its holder meanwhile."""

    id: str
    left: tuple[str, ...] = ()


class Beat(msgspec.Struct, Message[int | StoreError], frozen=True):
    """Write a heartbeat for every lease of this process; how many it has."""


@dataclass(slots=True)
class LeaseFold:
    """What was read, and what becomes of it. ``last`` is the last number that was given."""

    now: Now
    owner: Owner
    line: dict[str, ScopeLease]
    last: int
    changed: dict[str, ScopeLease] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    @property
    def dirty(self) -> bool:
        return bool(self.changed or self.ended)

    def answers(self, messages: Sequence[Message[Any]]) -> list[Any]:
        return [self._answer(message) for message in messages]

    def _answer(self, message: Message[Any]) -> Any:
        match message:
            case Take():
                return self._take(message)
            case Release():
                return self._release(message)
            case Beat():
                return self._beat()
            case _:
                raise TypeError(f"no message of the lease actor: {type(message).__qualname__}")

    def _take(self, ask: Take) -> Held | InTheWay:
        lease = self.line.get(ask.id)
        if lease is None:
            lease = self._put(
                ScopeLease(
                    id=ask.id,
                    run_id=ask.run_id,
                    parent_run=ask.parent_run,
                    number=self._next(),
                    held=False,
                    scope=ask.scope,
                    owner=self.owner,
                    since=self.now.wall,
                    beat=self.now,
                )
            )
        if lease.held:
            return Held(lease.number)
        blocking = in_the_way(lease, self.line.values(), self.now)
        if reaches_outside(lease, self.line.values()):
            return InTheWay(blocking, for_ever=True)
        if not blocking:
            number = self._next()
            self._put(replace(lease, held=True, number=number, since=self.now.wall, beat=self.now))
            return Held(number)
        if lease.silent(self.now) >= HEARTBEAT_S:
            self._put(replace(lease, beat=self.now))
        return InTheWay(blocking)

    def _release(self, message: Release) -> bool:
        lease = self.line.get(message.id)
        if lease is None:
            return False
        if lease.held and message.left:
            self._put(replace(lease, left=message.left))
        else:
            del self.line[lease.id]
            self.changed.pop(lease.id, None)
            self.ended.add(lease.id)
        return lease.held

    def _beat(self) -> int:
        ours = [lease for lease in self.line.values() if lease.owner == self.owner and not lease.left]
        for lease in ours:
            self._put(replace(lease, beat=self.now))
        return len(ours)

    def _next(self) -> int:
        self.last += 1
        return self.last

    def _put(self, lease: ScopeLease) -> ScopeLease:
        self.line[lease.id] = self.changed[lease.id] = lease
        return lease
