"""The spans that a killed owner never sent, told by who finds its rows: under their own ids, as recovered."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from custodes.adapters.registry import Registry
from custodes.store import Database, StoreError
from custodes.supervision.record import records
from custodes.supervision.record.records import AttemptRow
from custodes.supervision.record.span_tree import Provider, lineage_of, spans_of
from custodes.telemetry import NOTHING, SpanRecord, current_tracer
from custodes.telemetry.conventions import ERROR_TYPE, RECOVERED

logger = logging.getLogger("custodes.supervision")

OWNER_DIED = "owner_died"
"""``error.type`` of a span whose owner died before it ended."""
UNSENT_S = 5.0
"""How long a span that has ended may wait to be sent, in seconds: OpenTelemetry's own default. What ended so
long before the last that is known of its owner is told again; a collector knows it by its id."""


async def tell_of(database: Database, gone: Sequence[AttemptRow]) -> None:
    """:param gone: rows that were just closed because their owner is dead. Nothing is told where nothing is
    exported here, or their trace was not sampled."""
    tracer = current_tracer()
    traced = [row for row in gone if row.trace is not None and row.trace.sampled]
    if tracer is NOTHING or not traced:
        return
    provider = Registry.discover(database.path.parent.parent).provider
    for conversation in dict.fromkeys(row.conversation for row in traced):
        try:
            rows = await database.read(partial(records.of_conversation, conversation=conversation))
        except StoreError as error:
            logger.warning("the spans of a dead owner are not told: %s", error)
            return
        tracer.emit(lost(rows, {row.id for row in traced}, provider))


def lost(rows: Sequence[AttemptRow], open_ids: Collection[str], provider: Provider) -> Iterator[SpanRecord]:
    """Every span that was open at its owner's death, and those that may not have been sent before it. Pure.

    :param rows: all of one conversation; ``open_ids`` those among them that were open.
    """
    was_open = [row for row in rows if row.id in open_ids]
    died = max(row.ended or row.started for row in was_open)
    last = max((_last(row) for row in rows if _of_one(row, was_open)), default=died)
    unended = {span for row in was_open for span in _line(row, rows)}
    unsent = {
        span
        for row in rows
        if _of_one(row, was_open) and row.ended is not None and row.ended > last - UNSENT_S
        for span in _line(row, rows)
    }
    for span in spans_of(rows, until=died, provider=provider):
        if span.id in unended:
            attributes = span.attributes | {RECOVERED: True, ERROR_TYPE: OWNER_DIED}
            yield replace(span, attributes=attributes, error=True, parent=span.parent or _host(was_open))
        elif span.id in unsent:
            yield replace(span, attributes=span.attributes | {RECOVERED: True})


def _last(row: AttemptRow) -> float:
    return row.started if row.status == "unknown" or row.ended is None else row.ended


def _of_one(row: AttemptRow, was_open: Sequence[AttemptRow]) -> bool:
    """Whether it is of the same trace and owner as one that was open."""
    return row.trace is not None and any(
        each.trace is not None and each.trace.trace == row.trace.trace and each.owner == row.owner
        for each in was_open
    )


def _line(row: AttemptRow, rows: Sequence[AttemptRow]) -> tuple[str, ...]:
    line = lineage_of(row, rows)
    return line.conversation, line.fan_out, line.child, line.attempt, line.call


def _host(rows: Sequence[AttemptRow]) -> str:
    return next((row.trace.host for row in rows if row.trace is not None), "")
