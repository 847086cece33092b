"""What ran, for people and surfaces: the rows seen from now, by run and by conversation. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from custodes.supervision.record.owner_identity import Owner
from custodes.supervision.record.records import AttemptRow, RowStatus


class AttemptView(AttemptRow, frozen=True, kw_only=True):
    """A row as it stands. ``abandoned``: it is open though its owner is dead, so that nobody works on it any
    more; the next host to start here ends what is left of it and closes it as ``unknown``."""

    abandoned: bool = False


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of what the runtimes reported; None where none did."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: float | None = None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work. Its status is that of its newest row: a child that waits for a recovery reads as the
    attempt before it. Times are wall seconds since the epoch; ``ended`` is None while a row is open.
    ``parent_run`` is the run whose own processes asked for it; None for a child of the conversation's."""

    run_id: str
    parent_run: str | None
    conversation: str
    role: str
    name: str
    mutable: bool
    status: RowStatus
    abandoned: bool
    started: float
    ended: float | None
    used: Used
    attempts: tuple[AttemptView, ...]


class ConversationView(msgspec.Struct, frozen=True, kw_only=True):
    conversation: str
    started: float
    ended: float | None
    by_status: dict[str, int]
    abandoned: int
    """How many of its runs are."""
    used: Used
    runs: tuple[RunView, ...]


def attempts_seen(rows: Iterable[AttemptRow], dead: Callable[[Owner], bool]) -> tuple[AttemptView, ...]:
    """:param dead: whether an owner is proven to be gone; asked for open rows only."""
    return tuple(
        AttemptView(**msgspec.structs.asdict(row), abandoned=row.status == "running" and dead(row.owner))
        for row in rows
    )


def runs_of(attempts: Iterable[AttemptView]) -> tuple[RunView, ...]:
    """Oldest first, each with its attempts in their order."""
    by_run: dict[str, list[AttemptView]] = {}
    for attempt in sorted(attempts, key=lambda row: (row.started, row.run_id, row.number)):
        by_run.setdefault(attempt.run_id, []).append(attempt)
    return tuple(_run(rows) for rows in by_run.values())


def by_descent(runs: Sequence[RunView]) -> Iterator[tuple[int, RunView]]:
    """Each run with its level (0 at the top), and what it started right below it. One whose parent is not
    among them stands at the top."""
    known = {run.run_id for run in runs}
    below: dict[str | None, list[RunView]] = {}
    for run in runs:
        below.setdefault(run.parent_run if run.parent_run in known else None, []).append(run)
    todo = [(0, run) for run in reversed(below.get(None, []))]
    while todo:
        level, run = todo.pop()
        yield level, run
        todo += [(level + 1, each) for each in reversed(below.get(run.run_id, []))]


def conversations_of(attempts: Iterable[AttemptView]) -> tuple[ConversationView, ...]:
    """Newest first, each with its runs oldest first."""
    by_conversation: dict[str, list[RunView]] = {}
    for run in runs_of(attempts):
        by_conversation.setdefault(run.conversation, []).append(run)
    found = [_conversation(runs) for runs in by_conversation.values()]
    return tuple(sorted(found, key=lambda each: each.started, reverse=True))


def _run(rows: Sequence[AttemptView]) -> RunView:
    first, last = rows[0], rows[-1]
    return RunView(
        run_id=first.run_id,
        parent_run=first.parent_run,
        conversation=first.conversation,
        role=first.role,
        name=first.name,
        mutable=first.mutable,
        status=last.status,
        abandoned=any(row.abandoned for row in rows),
        started=first.started,
        ended=_end(row.ended for row in rows),
        used=_sum(rows),
        attempts=tuple(rows),
    )


def _conversation(runs: Sequence[RunView]) -> ConversationView:
    return ConversationView(
        conversation=runs[0].conversation,
        started=runs[0].started,
        ended=_end(run.ended for run in runs),
        by_status=dict(Counter(run.status for run in runs)),
        abandoned=sum(run.abandoned for run in runs),
        used=_sum([row for run in runs for row in run.attempts]),
        runs=tuple(runs),
    )


def _end(ends: Iterable[float | None]) -> float | None:
    known = list(ends)
    return None if None in known else max(end for end in known if end is not None)


def _sum(rows: Sequence[AttemptView]) -> Used:
    sums = {}
    for name in Used.__struct_fields__:
        known = [value for row in rows if (value := getattr(row, name)) is not None]
        sums[name] = sum(known) if known else None
    return Used(**sums)
