"""The state a progress tree shows, folded from events: ``apply(tree, event)`` is pure."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from custodes.adapters.port import Failure
from custodes.supervision.events import (
    AttemptEnded,
    AttemptProgress,
    AttemptRefused,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
    PermissionAnswered,
    PermissionAsked,
)
from custodes.supervision.work import Outcome

State = Literal[
    "queued", "waiting", "running", "done", "failed", "refused", "cancelled", "skipped", "unknown"
]


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    pool: str
    model: str | None
    probe: bool
    fallback_reason: str | None
    seconds: float | None = None
    """None while it runs."""
    failure: Failure | None = None
    chars: int = 0
    tool: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One child. ``since`` is when its state began, ``until`` when its wait ends (epoch seconds)."""

    run_id: str
    name: str
    role: str
    parent_run: str | None = None
    """The child whose own processes asked for it."""
    state: State = "queued"
    since: float = 0.0
    until: float | None = None
    reason: str = ""
    attempts: tuple[AttemptRow, ...] = ()
    outcome: Outcome | None = None
    asks: tuple[PermissionAsked, ...] = ()
    """What it asks leave for, and nobody has answered yet."""


class PoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as the events told of it. ``until`` is its stated recovery (epoch seconds), where it has one."""

    state: Literal["healthy", "cooling_down", "half_open"] = "healthy"
    until: float | None = None
    attempts: int = 0


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    rows: dict[str, Row] = {}
    pools: dict[str, PoolRow] = {}

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Of the conversation's own children that ended, in the order they were asked for."""
        own = (row for row in self.rows.values() if row.parent_run is None)
        return tuple(row.outcome for row in own if row.outcome is not None)

    def below(self, run_id: str | None) -> tuple[Row, ...]:
        """The children that the run asked for; the conversation's own for None."""
        return tuple(row for row in self.rows.values() if row.parent_run == run_id)


def apply(tree: Tree, event: Event) -> Tree:
    """The tree after the event. An event of a child nobody queued changes nothing."""
    if isinstance(event, ChildQueued):
        row = Row(
            run_id=event.run_id,
            name=event.name,
            role=event.role,
            parent_run=event.parent_run,
            since=event.at,
        )
        return replace(tree, rows={**tree.rows, event.run_id: row})
    known = tree.rows.get(event.run_id)
    if known is None:
        return tree
    return Tree(
        rows={**tree.rows, event.run_id: _row(known, event)},
        pools={**tree.pools, **_pools(tree, event)},
    )


def close(tree: Tree) -> Tree:
    """The tree once the conversation has ended: what had not ended by then was cancelled with it."""
    rows = {
        run_id: row if row.outcome is not None else replace(row, state="cancelled", until=None)
        for run_id, row in tree.rows.items()
    }
    return replace(tree, rows=rows)


def _row(row: Row, event: Event) -> Row:
    match event:
        case ChildWaiting():
            until = event.at + event.seconds if event.seconds is not None else None
            return replace(row, state="waiting", since=event.at, until=until, reason=event.reason)
        case AttemptStarted():
            attempt = AttemptRow(
                number=event.number,
                pool=event.pool,
                model=event.model,
                probe=event.probe,
                fallback_reason=event.fallback_reason,
            )
            attempts = (*row.attempts, attempt)
            return replace(row, state="running", since=event.at, until=None, reason="", attempts=attempts)
        case AttemptProgress():
            return _with_attempt(row, event.number, chars=event.progress.chars, tool=event.progress.tool)
        case AttemptEnded():
            return _with_attempt(row, event.number, seconds=event.seconds, failure=event.failure)
        case PermissionAsked():
            return replace(row, asks=(*row.asks, event))
        case PermissionAnswered():
            return replace(row, asks=tuple(ask for ask in row.asks if ask.ask != event.ask))
        case AttemptRefused():
            return replace(row, reason=event.refusal.reason)
        case ChildEnded():
            return replace(
                row, state=event.outcome.status, since=event.at, until=None, outcome=event.outcome, reason=""
            )
    return row


def _with_attempt(
    row: Row,
    number: int,
    *,
    chars: int | None = None,
    tool: str | None = None,
    seconds: float | None = None,
    failure: Failure | None = None,
) -> Row:
    attempts = tuple(
        replace(
            attempt,
            chars=attempt.chars + (chars or 0),
            tool=tool or attempt.tool,
            seconds=seconds if seconds is not None else attempt.seconds,
            failure=failure or attempt.failure,
        )
        if attempt.number == number
        else attempt
        for attempt in row.attempts
    )
    return replace(row, attempts=attempts)


def _pools(tree: Tree, event: Event) -> dict[str, PoolRow]:
    match event:
        case AttemptStarted():
            pool = tree.pools.get(event.pool, PoolRow())
            state = "half_open" if event.probe else pool.state
            return {event.pool: replace(pool, attempts=pool.attempts + 1, state=state)}
        case AttemptProgress() if event.progress.kind == "output":
            return _healed(tree, event.run_id, event.number)
        case AttemptEnded() if event.failure is None:
            return _healed(tree, event.run_id, event.number)
        case AttemptEnded() if event.failure is not None and event.failure.category == "capacity":
            wait = event.failure.retry_after_s
            until = event.at + wait if wait is not None else None
            return {
                event.pool: replace(tree.pools.get(event.pool, PoolRow()), state="cooling_down", until=until)
            }
        case AttemptRefused():
            return {
                wait.pool: replace(
                    tree.pools.get(wait.pool, PoolRow()), state=wait.state, until=event.at + wait.recovery_s
                )
                for wait in event.refusal.waiting
            }
    return {}


def _healed(tree: Tree, run_id: str, number: int) -> dict[str, PoolRow]:
    """Only the probe heals a pool: at its first output, or at its end."""
    for attempt in tree.rows[run_id].attempts:
        if attempt.number == number and attempt.probe:
            return {attempt.pool: replace(tree.pools[attempt.pool], state="healthy", until=None)}
    return {}
