"""A batch of the health actor's messages, folded in order over what was read: pure, no clock, no SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from custodes.actors import Message
from custodes.adapters.port import Failure
from custodes.supervision.pools.admission import (
    Admission,
    Admit,
    Clear,
    Confirm,
    Record,
    Refused,
    Settle,
    Snapshot,
    Traced,
    Unavailable,
    Withdraw,
)
from custodes.supervision.pools.breaker import Ask, Cleared, Confirmed, Denied, Pool, Settled, Ticket, decide
from custodes.supervision.pools.health_view import HealthView, Unavailability, adapter_of, view
from custodes.supervision.record.clock import Now, wall_after, whole_seconds
from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.record.records import AttemptEnd, AttemptRow, closed
from custodes.supervision.work import Waiting


@dataclass(slots=True)
class Fold:
    """What was read, and what becomes of it. ``changed_…`` and ``opened`` are what is to be written.

    :param dead_leases: ids of leases whose owner is proven dead.
    :param lost_scopes: ids of the scope leases that asks name and that are not held any more.
    """

    now: Now
    owner: Owner
    pools: dict[str, Pool]
    unavailable: dict[str, Unavailability]
    rows: dict[str, AttemptRow]
    dead_leases: frozenset[str] = frozenset()
    lost_scopes: frozenset[str] = frozenset()
    changed_pools: dict[str, Pool] = field(default_factory=dict)
    changed_unavailable: dict[str, Unavailability | None] = field(default_factory=dict)
    changed_rows: dict[str, AttemptRow] = field(default_factory=dict)
    opened: dict[str, AttemptRow] = field(default_factory=dict)

    @property
    def dirty(self) -> bool:
        return bool(self.changed_pools or self.changed_unavailable or self.changed_rows or self.opened)

    def answers(self, messages: Sequence[Message[Any]]) -> list[Any]:
        return [self._answer(message) for message in messages]

    def _answer(self, message: Message[Any]) -> Any:
        match message:
            case Admit():
                return self._admit(message)
            case Confirm():
                return self._confirm(message.ticket)
            case Traced():
                return self._traced(message)
            case Settle():
                self._settle(message.ticket, message.failure, message.end, message.cancelled)
                return True
            case Withdraw():
                return self._withdraw(message.id)
            case Record():
                return self._open(message.row)
            case Clear():
                return self._clear(message.target)
            case Snapshot():
                return self._view()
            case _:
                raise TypeError(f"no message of the health actor: {type(message).__qualname__}")

    def _admit(self, ask: Admit) -> Admission | Refused:
        if ask.scope_lease in self.lost_scopes:
            return _fenced_off(ask)
        waiting: list[tuple[int, Waiting]] = []
        unavailable: list[tuple[int, Unavailable]] = []
        # An overload mark is no refusal: it only lets the others go first.
        for index in sorted(
            range(len(ask.candidates)), key=lambda i: self._pool(ask.candidates[i].pool).marked(self.now)
        ):
            candidate = ask.candidates[index]
            mark = self.unavailable.get(candidate.adapter)
            if mark is not None and mark.applies(candidate.adapter, candidate.fingerprint):
                unavailable.append(
                    (
                        index,
                        Unavailable(
                            adapter=candidate.adapter,
                            pool=candidate.pool,
                            category=mark.category,
                            reason=mark.reason,
                        ),
                    )
                )
                continue
            pool = self._pool(candidate.pool)
            holder_dead = pool.lease is not None and pool.lease.id in self.dead_leases
            event = Ask(
                attempt=ask.id,
                owner=self.owner,
                lease_s=ask.lease_s,
                cooldown=ask.cooldown,
                holder_dead=holder_dead,
            )
            then, answer = decide(pool, event, self.now)
            self._put(pool, then)
            if isinstance(answer, Denied):
                waiting.append((index, _waiting(self._pool(candidate.pool), answer)))
                continue
            return self._admitted(ask, index, pool, answer, _refused(waiting, unavailable))
        return _refused(waiting, unavailable)

    def _admitted(self, ask: Admit, index: int, pool: Pool, ticket: Ticket, before: Refused) -> Admission:
        """``pool`` is as it was before it let this in."""
        candidate, start = ask.candidates[index], ask.attempt
        state = pool.state(self.now)
        covers = _covered(ask, index, before)
        probe = ticket.lease_id is not None
        self._open(
            AttemptRow(
                id=ask.id,
                run_id=start.run_id,
                number=start.number,
                conversation=start.conversation,
                role=start.role,
                name=start.name,
                mutable=start.mutable,
                parent_run=start.parent_run,
                adapter=candidate.adapter,
                model=candidate.model,
                effort=candidate.effort,
                fingerprint=candidate.fingerprint,
                pool=candidate.pool,
                generation=ticket.generation,
                health_state=state,
                probe=probe,
                owner=self.owner,
                started=self.now.wall,
                fan_out=start.fan_out,
                trace=start.trace,
                fallback_reason=covers,
            )
        )
        return Admission(
            ticket=msgspec.structs.replace(ticket, begun=self.now),
            candidate=index,
            state=state,
            probe=probe,
            fallback_reason=covers,
            before=before,
        )

    def _confirm(self, ticket: Ticket) -> None:
        row = self.rows.get(ticket.attempt)
        if (
            row is not None
            and row.status == "running"
            and self._decide(ticket.pool, Confirmed(ticket)) is True
        ):
            self._change(msgspec.structs.replace(row, confirmed=True))

    def _traced(self, message: Traced) -> None:
        row = self.rows.get(message.ticket.attempt)
        if row is not None and row.status == "running":
            self._change(msgspec.structs.replace(row, trace=message.trace))

    def _settle(self, ticket: Ticket, failure: Failure | None, end: AttemptEnd, cancelled: bool) -> None:
        row = self.rows.get(ticket.attempt)
        if row is None or row.status != "running":
            return  # settled before
        self._decide(
            ticket.pool,
            Settled(ticket=ticket, failure=failure, cancelled=cancelled, confirmed=row.confirmed),
        )
        if cancelled and end.status is None:
            end = msgspec.structs.replace(end, status="cancelled")
        ended = self.now.wall if ticket.begun is None else wall_after(ticket.begun, self.now)
        self._change(closed(row, failure, end, ended))
        if row.adapter is not None and not cancelled:
            self._note_readiness(row.adapter, row.fingerprint, failure)

    def _note_readiness(self, adapter: str, fingerprint: str | None, failure: Failure | None) -> None:
        mark = self.unavailable.get(adapter)
        if failure is None:
            if mark is not None and mark.fingerprint != fingerprint:
                self._mark(adapter, None)  # it works again, after the change
        elif failure.category == "auth" or (failure.category == "unavailable" and not failure.retryable):
            needs = "its login" if failure.category == "auth" else "it"
            reason = (
                f"adapter '{adapter}' failed with {failure.category}; it is not asked again until {needs} "
                f"changes or `cos health clear {adapter}`"
            )
            self._mark(
                adapter,
                Unavailability(
                    adapter=adapter,
                    fingerprint=fingerprint,
                    category=failure.category,
                    reason=reason,
                    since=self.now.wall,
                ),
            )

    def _withdraw(self, attempt: str) -> None:
        row = self.rows.get(attempt)
        if row is None or row.pool is None or row.generation is None:
            return
        lease_id = row.id if row.probe else None
        ticket = Ticket(pool=row.pool, generation=row.generation, attempt=row.id, lease_id=lease_id)
        self._settle(ticket, None, AttemptEnd(), cancelled=True)

    def _clear(self, target: str) -> tuple[str, ...]:
        names = sorted(name for name in self.pools if target in (name, adapter_of(name)))
        for name in names:
            self._decide(name, Cleared())
        if target in self.unavailable:
            self._mark(target, None)
            if target not in names:
                names.append(target)
        return tuple(names)

    def _view(self) -> HealthView:
        return view(self.pools.values(), self.unavailable.values(), self.now)

    # -- What was read, with what was decided over it

    def _pool(self, name: str) -> Pool:
        return self.pools.get(name) or Pool(name=name)

    def _decide(self, name: str, event: Confirmed | Settled | Cleared) -> bool:
        pool = self._pool(name)
        then, changed = decide(pool, event, self.now)
        self._put(pool, then)
        return changed

    def _put(self, before: Pool, then: Pool) -> None:
        if then is not before:
            self.pools[then.name] = self.changed_pools[then.name] = then

    def _open(self, row: AttemptRow) -> None:
        self.rows[row.id] = self.opened[row.id] = row

    def _change(self, row: AttemptRow) -> None:
        self.rows[row.id] = row
        (self.opened if row.id in self.opened else self.changed_rows)[row.id] = row

    def _mark(self, adapter: str, mark: Unavailability | None) -> None:
        self.changed_unavailable[adapter] = mark
        if mark is None:
            self.unavailable.pop(adapter, None)
        else:
            self.unavailable[adapter] = mark


def _fenced_off(ask: Admit) -> Refused:
    reason = "its scope was released or taken over by somebody else meanwhile"
    return Refused(
        unavailable=tuple(
            Unavailable(adapter=each.adapter, pool=each.pool, category="unavailable", reason=reason)
            for each in ask.candidates
        )
    )


def _covered(ask: Admit, index: int, before: Refused) -> str | None:
    """The category of what the candidate of this index stands in for; None where it is what was asked for."""
    if index == 0 or ask.attempt.fallback_reason is not None:
        return ask.attempt.fallback_reason
    first = ask.candidates[0]
    if any(each.pool == first.pool for each in before.waiting):
        return "capacity"
    marks = (each.category for each in before.unavailable if each.adapter == first.adapter)
    return next(marks, "provider")  # asked of neither: overloaded a moment ago, it comes last


_NOBODY = Refused()


def _refused(waiting: list[tuple[int, Waiting]], unavailable: list[tuple[int, Unavailable]]) -> Refused:
    """In the order asked."""
    if not waiting and not unavailable:
        return _NOBODY
    return Refused(
        waiting=tuple(each for _, each in sorted(waiting, key=lambda pair: pair[0])),
        unavailable=tuple(each for _, each in sorted(unavailable, key=lambda pair: pair[0])),
    )


def _waiting(pool: Pool, denied: Denied) -> Waiting:
    reason = "a recovery probe is running" if denied.state == "half_open" else pool.reason
    return Waiting(
        pool=pool.name, state=denied.state, recovery_s=whole_seconds(denied.recovery), reason=reason
    )
