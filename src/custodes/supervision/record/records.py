"""The attempt rows: one for each attempt, ``running`` before its runtime is called and closed after it;
refusals and skips have one too.

A row holds no provider text and no prompt: its ``reason`` is composed by us.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from custodes.adapters.foreign import cost, count
from custodes.adapters.port import Category, Certainty, Failure, Usage
from custodes.store import Connection, Table
from custodes.supervision.record.ids import new_id
from custodes.supervision.record.owner_identity import Owner, this_process
from custodes.supervision.work import Outcome, PoolState, failed_status
from custodes.telemetry import Lineage

RowStatus = Literal["running", "done", "failed", "cancelled", "unknown", "refused", "skipped"]

RETENTION_S = 90 * 86_400.0
"""How long a closed row is kept, in seconds. One of mutable work whose outcome is unknown stays until an
operator has resolved it."""
LEAST_KEPT = 1_000
"""So many of the newest stay whatever their age: a clock that ran ahead would date all of them at once."""


class Group(msgspec.Struct, frozen=True):
    """The fan-out that work was asked for in. ``id`` is that of its first child's run."""

    id: str
    name: str


class AttemptStart(msgspec.Struct, frozen=True, kw_only=True):
    """What dispatch knows of an attempt before it is admitted."""

    run_id: str
    number: int
    conversation: str
    role: str
    name: str = ""
    mutable: bool = True
    parent_run: str | None = None
    fan_out: Group | None = None
    trace: Lineage | None = None
    fallback_reason: str | None = None
    """The category of why its first candidate is not the route that was asked for; None where it is."""


class AttemptEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended. ``status`` is composed from the failure where it is None: ``done`` without one,
    else ``failed``, or ``unknown`` where mutable work may have had an effect."""

    status: RowStatus | None = None
    usage: Usage | None = None
    native_thread_id: str | None = None
    served_model: str | None = None


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it is stored. ``started`` and ``ended`` are wall seconds since the epoch.

    ``generation`` is that of the pool at admission, and ``fingerprint`` the adapter's readiness then.
    """

    id: str = msgspec.field(default_factory=new_id)
    run_id: str
    number: int
    conversation: str
    role: str
    name: str = ""
    mutable: bool = True
    parent_run: str | None = None
    adapter: str | None = None
    model: str | None = None
    effort: str | None = None
    fingerprint: str | None = None
    pool: str | None = None
    generation: int | None = None
    health_state: PoolState | None = None
    probe: bool = False
    confirmed: bool = False
    status: RowStatus = "running"
    category: Category | str | None = None
    """A failure's, or a refusal's."""
    retry_after_s: int | None = None
    outcome: Certainty | None = None
    reason: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None
    native_thread_id: str | None = None
    served_model: str | None = None
    owner: Owner = msgspec.field(default_factory=this_process)
    started: float = 0.0
    ended: float | None = None
    fan_out: Group | None = None
    """None for work that was asked for alone."""
    trace: Lineage | None = None
    """Where it stands in its trace; None where nothing is traced. Known down to the child at admission, and
    down to the call once the runtime's program has started."""
    fallback_reason: str | None = None
    """The category of what it stands in for, as :class:`Attempt` has it."""


ATTEMPTS = Table(
    "attempts",
    AttemptRow,
    changing=(
        "confirmed",
        "status",
        "category",
        "retry_after_s",
        "outcome",
        "reason",
        "input_tokens",
        "output_tokens",
        "cached_input_tokens",
        "cost_usd",
        "native_thread_id",
        "served_model",
        "ended",
        "trace",
    ),
)


def closed(row: AttemptRow, failure: Failure | None, end: AttemptEnd, ended: float) -> AttemptRow:
    """The row at its attempt's end. A figure that no adapter of ours would state counts as not stated: the
    row could not be written, and would stay open."""
    usage = end.usage or Usage()
    if failure is not None:
        failure = msgspec.structs.replace(failure, retry_after_s=count(failure.retry_after_s))
    status = end.status or ("done" if failure is None else failed_status(failure, row.mutable))
    return msgspec.structs.replace(
        row,
        status=status,
        category=failure and failure.category,
        retry_after_s=failure and failure.retry_after_s,
        outcome=failure and failure.outcome,
        reason=_reason(row, failure, status),
        input_tokens=count(usage.input_tokens),
        output_tokens=count(usage.output_tokens),
        cached_input_tokens=count(usage.cached_input_tokens),
        cost_usd=cost(usage.cost_usd),
        native_thread_id=end.native_thread_id,
        served_model=end.served_model,
        ended=ended,
    )


def _reason(row: AttemptRow, failure: Failure | None, status: RowStatus) -> str:
    """Composed from category, pool and wait alone, whatever the failure's own reason holds."""
    if failure is None:
        return "" if status == "done" else status
    wait = "" if failure.retry_after_s is None else f", {failure.retry_after_s} s stated"
    return f"{'overload' if failure.overloaded else failure.category} on {row.pool}{wait}"


def refused_row(
    conversation: str,
    outcome: Outcome,
    at: float,
    *,
    number: int | None = None,
    mutable: bool = True,
    parent_run: str | None = None,
    fan_out: Group | None = None,
    trace: Lineage | None = None,
) -> AttemptRow:
    """The row of work that ended refused or skipped, and of which nothing ran.

    :param at: wall seconds since the epoch.
    """
    refusal = outcome.refusal
    route = refusal.route if refusal else None
    return AttemptRow(
        run_id=outcome.run_id,
        number=len(outcome.attempts) + 1 if number is None else number,
        conversation=conversation,
        role=outcome.role,
        name=outcome.name,
        mutable=mutable,
        parent_run=parent_run,
        adapter=route.adapter if route else None,
        model=route.model if route else None,
        effort=route.effort if route else None,
        pool=route.pool if route else None,
        status="skipped" if outcome.status == "skipped" else "refused",
        category=refusal.category if refusal else None,
        retry_after_s=refusal.retry_after_s if refusal else None,
        reason=f"refused: {refusal.category}" if refusal else outcome.status,
        started=at,
        ended=at,
        fan_out=fan_out,
        trace=trace,
    )


async def insert(connection: Connection, rows: Iterable[AttemptRow]) -> None:
    await ATTEMPTS.insert(connection, rows)


async def update(connection: Connection, rows: Iterable[AttemptRow]) -> None:
    """Write what may have changed of rows that stand: how each is told apart and what it was asked stays."""
    await ATTEMPTS.update(connection, rows)


async def by_id(connection: Connection, ids: Collection[str]) -> list[AttemptRow]:
    return await ATTEMPTS.among(connection, "id", ids)


async def running(connection: Connection) -> list[AttemptRow]:
    """Every open row, of whatever owner, oldest first."""
    return await ATTEMPTS.select(connection, "WHERE status = 'running' ORDER BY started, id")


async def of_run(connection: Connection, run_id: str) -> list[AttemptRow]:
    return await ATTEMPTS.select(connection, "WHERE run_id = ? ORDER BY number, started", run_id)


async def open_of_run(connection: Connection, run_id: str) -> AttemptRow | None:
    """The attempt of the run that is at work; None where none is."""
    return next(
        iter(await ATTEMPTS.select(connection, "WHERE run_id = ? AND status = 'running'", run_id)), None
    )


async def of_conversation(connection: Connection, conversation: str) -> list[AttemptRow]:
    return await ATTEMPTS.select(
        connection, "WHERE conversation = ? ORDER BY started, run_id, number", conversation
    )


async def latest_runs(connection: Connection, limit: int) -> list[AttemptRow]:
    """Every row of the newest runs of all conversations, oldest first."""
    newest = await _newest(connection, limit)
    return await ATTEMPTS.among(connection, "run_id", newest, "ORDER BY started, run_id, number")


async def _newest(connection: Connection, limit: int) -> list[str]:
    """The runs that started an attempt last. It goes back from the newest row as far as that takes: to group
    all of them by their run took two seconds for a million."""
    found: dict[str, None] = {}
    seen, page = 0, 4 * limit
    while True:
        rows = await connection.execute_fetchall(
            "SELECT run_id FROM attempts ORDER BY started DESC, run_id DESC LIMIT ? OFFSET ?", (page, seen)
        )
        found |= dict.fromkeys(run_id for (run_id,) in rows)
        if len(found) >= limit or len(rows) < page:
            return list(found)[:limit]
        seen, page = seen + page, 2 * page


_SEARCHED = (
    "conversation",
    "run_id",
    "role",
    "name",
    "adapter",
    "model",
    "status",
    "category",
    "native_thread_id",
)


async def matching_runs(connection: Connection, words: Sequence[str], limit: int) -> list[AttemptRow]:
    """Every row of the newest runs of which one row has each word somewhere, in any case; oldest first."""
    text = " || ' ' || ".join(f"ifnull({column}, '')" for column in _SEARCHED)
    where = " AND ".join([f"instr(lower({text}), ?)"] * len(words)) or "1"
    newest = (
        f"SELECT run_id FROM attempts WHERE {where} "  # noqa: S608  # our own names
        "GROUP BY run_id ORDER BY max(started) DESC, run_id DESC LIMIT ?"
    )
    return await ATTEMPTS.select(
        connection,
        f"WHERE run_id IN ({newest}) ORDER BY started, run_id, number",
        *(word.lower() for word in words),
        limit,
    )


async def retained_since(connection: Connection, wall: float) -> float:
    """The wall time before which what is on record may be deleted; ``wall`` is what the clock says now."""
    newest = await connection.execute_fetchall(
        "SELECT ended FROM attempts WHERE ended IS NOT NULL ORDER BY ended DESC LIMIT 1 OFFSET ?",
        (LEAST_KEPT - 1,),
    )
    return min(wall - RETENTION_S, newest[0][0]) if newest else 0.0


async def prune(connection: Connection, before: float) -> int:
    """Delete what was closed before this wall time; how many rows that were.

    What a plan's step in flight had come to stays: whether it may be run again is read from it.
    """
    gone = await connection.execute_fetchall(
        "DELETE FROM attempts WHERE ended < ? AND NOT (status = 'unknown' AND mutable) AND run_id NOT IN "
        "(SELECT run_id FROM plan_steps WHERE status = 'running') RETURNING id",
        (before,),
    )
    return len(list(gone))
