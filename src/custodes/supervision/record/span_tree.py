"""The spans of a conversation as its rows tell them: the whole tree, from the store alone. Pure.

Where the rows know the ids of spans that were exported, these are those spans; else ids are made of what the
rows are called by, so that the same rows always give the same tree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from custodes.supervision.record.records import AttemptRow
from custodes.telemetry import Lineage, SpanRecord, shapes
from custodes.telemetry.conventions import ERROR_TYPE
from custodes.telemetry.shapes import Shape
from custodes.telemetry.values import Value, clean

Provider = Callable[[str], str]
"""What an adapter's descriptor declares as its provider; "" where there is none (any more)."""


def spans_of(rows: Sequence[AttemptRow], *, until: float, provider: Provider) -> tuple[SpanRecord, ...]:
    """:param rows: of one conversation, oldest first.
    :param until: wall seconds; where a span ends whose work has not.
    """
    by_trace: dict[str, list[tuple[AttemptRow, Lineage]]] = {}
    for row in rows:
        line = lineage_of(row, rows)
        by_trace.setdefault(line.trace, []).append((row, line))
    found: list[SpanRecord] = []
    for lines in by_trace.values():
        found += _tree(lines, until, provider)
    return tuple(found)


def lineage_of(row: AttemptRow, rows: Sequence[AttemptRow]) -> Lineage:
    """The ids of a row's line, each of them known or made.

    :param rows: of its conversation: the attempt that asked for it is among them.
    """
    known = row.trace or Lineage(trace=_made(32, row.conversation))
    conversation = known.conversation or _made(16, row.conversation, known.trace)
    fan_out = known.fan_out
    if not fan_out and row.fan_out is not None and row.parent_run is None:
        fan_out = _made(16, row.fan_out.id, "fan-out")
    return Lineage(
        trace=known.trace,
        flags=known.flags,
        conversation=conversation,
        fan_out=fan_out,
        under=known.under or _asked_by(row, rows) or fan_out or conversation,
        child=known.child or _made(16, row.run_id, "child"),
        attempt=known.attempt or _made(16, row.id, "attempt"),
        call=known.call or _made(16, row.id, "call"),
    )


def _asked_by(row: AttemptRow, rows: Sequence[AttemptRow]) -> str:
    """The attempt that nested work was asked for by: the newest of its parent that had begun."""
    before = [each for each in rows if each.run_id == row.parent_run and each.started <= row.started]
    if row.parent_run is None or not before:
        return ""
    newest = max(before, key=lambda each: each.number)
    return (newest.trace.attempt if newest.trace else "") or _made(16, newest.id, "attempt")


def _made(digits: int, *words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:digits]


def _tree(
    lines: Sequence[tuple[AttemptRow, Lineage]], until: float, provider: Provider
) -> Iterable[SpanRecord]:
    first, line = lines[0]
    yield _span(line, line.conversation, "", shapes.conversation(first.conversation), _rows(lines), until)
    for fan_out in dict.fromkeys(line.fan_out for _, line in lines if line.fan_out):
        inside = [(row, line) for row, line in lines if line.fan_out == fan_out]
        name = next((row.fan_out.name for row, _ in inside if row.fan_out), "fan-out")
        size = shapes.known(fan_out_size=len({row.run_id for row, _ in inside}))
        line = inside[0][1]
        yield _span(line, fan_out, line.conversation, shapes.fan_out(name), _rows(inside), until, size)
    for child in dict.fromkeys(line.child for _, line in lines):
        run = [(row, line) for row, line in lines if line.child == child]
        yield from _child(run, until, provider)


def _rows(lines: Iterable[tuple[AttemptRow, Lineage]]) -> list[AttemptRow]:
    return [row for row, _ in lines]


def _child(
    run: Sequence[tuple[AttemptRow, Lineage]], until: float, provider: Provider
) -> Iterable[SpanRecord]:
    (first, line), (last, _) = run[0], run[-1]
    shape = shapes.child(first.role, first.run_id, first.name)
    yield _span(line, line.child, line.under, shape, _rows(run), until, error=_error(last))
    for row, own in run:
        if row.adapter is not None:
            yield from _attempt(row, own, until, provider(row.adapter))


def _attempt(row: AttemptRow, line: Lineage, until: float, provider: str) -> Iterable[SpanRecord]:
    adapter, error = row.adapter or "", _error(row)
    if row.status in ("refused", "skipped"):
        if row.pool is not None and error is not None:
            blocked = shapes.blocked(
                adapter=adapter,
                pool=row.pool,
                category=error,
                health_state=row.health_state,
                retry_after_s=row.retry_after_s,
            )
            yield _span(line, line.attempt, line.child, blocked, [row], until, error=error)
        return
    attempt = shapes.attempt(
        number=row.number,
        adapter=adapter,
        pool=row.pool,
        health_state=row.health_state,
        probe=row.probe,
        fallback_reason=row.fallback_reason,
    )
    ended = shapes.known(category=row.category, outcome=row.outcome, retry_after_s=row.retry_after_s)
    yield _span(line, line.attempt, line.child, attempt, [row], until, ended, error=error)
    call = shapes.call(role=row.role, provider=provider, adapter=adapter, model=row.model, effort=row.effort)
    used = shapes.known(
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached_input_tokens=row.cached_input_tokens,
        cost_usd=row.cost_usd,
        native_conversation=row.native_thread_id,
        served_model=row.served_model,
    )
    yield _span(line, line.call, line.attempt, call, [row], until, used, error=error)


def _error(row: AttemptRow) -> str | None:
    """``error.type`` of what ended so; None for what ended well, or has not ended."""
    if row.status in ("done", "skipped", "running"):
        return None
    return row.category or row.status


def _span(
    line: Lineage,
    span_id: str,
    parent: str,
    shape: Shape,
    rows: Sequence[AttemptRow],
    until: float,
    more: dict[str, Value | None] | None = None,
    *,
    error: str | None = None,
) -> SpanRecord:
    begun = min(row.started for row in rows)
    ended = max(until if row.ended is None else row.ended for row in rows)
    attributes = clean(shape.attributes | (more or {}) | {ERROR_TYPE: error})
    return SpanRecord(
        trace=line.trace,
        id=span_id,
        parent=parent,
        name=shape.name,
        kind="client" if shape.level == "call" else "internal",
        begun=round(begun * 1e9),
        ended=round(max(begun, ended) * 1e9),
        attributes={**attributes},
        error=error is not None,
        flags=int(line.flags, 16),
    )
