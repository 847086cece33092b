"""Where time and money went, as a picture: each child's attempts on one line of time, and each model's share.

Figures for the template; no style, so that the content policy needs no exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

import msgspec

from custodes.supervision.record.run_view import AttemptView, RunView, by_descent

T = TypeVar("T", int, float)

LANES = 40
"""Children that have a line of their own: those that took most of the time or of the money. How many were at
work at once is drawn of all."""
WIDTH = 1000.0
HEIGHT = 100.0
SLOTS = 125


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """``x`` and ``width`` are thousandths of the whole time."""

    x: float
    width: float
    status: str
    title: str


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """``depth`` is 0 for a child of the conversation itself, 1 for a child's child, and so on. ``cost_usd``
    is its own, without what it started."""

    name: str
    run_id: str
    depth: int
    bars: tuple[Bar, ...]
    cost_usd: float | None


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """``x`` and ``width`` are thousandths of the whole time, ``height`` hundredths of the most at once."""

    x: float
    width: float
    height: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """How many attempts were at work at once: the mean of each slot of time, and the largest of these."""

    columns: tuple[Column, ...]
    most: float


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one model took. The parts are thousandths of all models' together; None where nothing is known."""

    name: str
    attempts: int
    seconds: float
    tokens: int | None
    cost_usd: float | None
    time_part: float
    cost_part: float | None


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    span_s: float
    lanes: tuple[Lane, ...]
    left_out: int
    """Children without a line of their own."""
    load: Load | None
    """None where each has one."""
    shares: tuple[Share, ...]


def picture(runs: Iterable[RunView], now: float) -> Picture:
    """:param now: wall seconds, the end of what still runs."""
    descent = by_descent(tuple(runs))
    tree = [(depth, run) for depth, run in descent if any(each.adapter for each in run.attempts)]
    drawn = [run for _, run in tree]
    attempts = [attempt for run in drawn for attempt in run.attempts if attempt.adapter]
    begin = min((run.started for run in drawn), default=now)
    span = max(max((_end(attempt, now) for attempt in attempts), default=now) - begin, 0.001)
    chosen = _weightiest(drawn, now)
    lanes = tuple(
        Lane(
            name=run.name or run.role,
            run_id=run.run_id,
            depth=depth,
            bars=tuple(_bar(attempt, begin, span, now) for attempt in run.attempts if attempt.adapter),
            cost_usd=run.used.cost_usd,
        )
        for depth, run in tree
        if run.run_id in chosen
    )
    left_out = len(drawn) - len(lanes)
    return Picture(
        span_s=span,
        lanes=lanes,
        left_out=left_out,
        load=_load(attempts, begin, span, now) if left_out else None,
        shares=_shares(drawn, now),
    )


def _weightiest(runs: Sequence[RunView], now: float) -> set[str]:
    """Those that took most: of the time or of the money, whichever is more of it."""
    times = {run.run_id: (now if run.ended is None else run.ended) - run.started for run in runs}
    costs = {run.run_id: run.used.cost_usd or 0.0 for run in runs}
    time, cost = sum(times.values()) or 1.0, sum(costs.values()) or 1.0
    weights = {run: max(times[run] / time, costs[run] / cost) for run in times}
    return set(sorted(weights, key=weights.__getitem__, reverse=True)[:LANES])


def _load(attempts: Iterable[AttemptView], begin: float, span: float, now: float) -> Load:
    parts, changes = [0.0] * SLOTS, [0] * (SLOTS + 1)
    for attempt in attempts:
        first, last = ((at - begin) / span * SLOTS for at in (attempt.started, _end(attempt, now)))
        enters, leaves = min(int(first), SLOTS - 1), min(int(last), SLOTS - 1)
        if enters == leaves:
            parts[enters] += last - first
            continue
        parts[enters] += enters + 1 - first
        parts[leaves] += last - leaves
        changes[enters + 1] += 1  # the slots between the two, whole
        changes[leaves] -= 1
    means = [part + whole for part, whole in zip(parts, accumulate(changes), strict=False)]
    most = max(means)
    width = WIDTH / SLOTS
    columns = (
        Column(x=round(slot * width, 1), width=width, height=round(mean / (most or 1.0) * HEIGHT, 1))
        for slot, mean in enumerate(means)
        if mean
    )
    return Load(columns=tuple(columns), most=most)


def _end(attempt: AttemptView, now: float) -> float:
    return max(now if attempt.ended is None else attempt.ended, attempt.started)


def _bar(attempt: AttemptView, begin: float, span: float, now: float) -> Bar:
    x = (attempt.started - begin) / span * WIDTH
    width = (_end(attempt, now) - attempt.started) / span * WIDTH
    where = " ".join(word for word in (attempt.adapter, attempt.model, attempt.effort) if word)
    return Bar(
        x=round(min(x, WIDTH - 2), 1),
        width=round(max(width, 2.0), 1),
        status=attempt.status,
        title=f"{attempt.number}. {where}: {attempt.reason or attempt.status}",
    )


def _shares(runs: Iterable[RunView], now: float) -> tuple[Share, ...]:
    groups: dict[str, list[AttemptView]] = {}
    for run in runs:
        for attempt in run.attempts:
            if attempt.adapter and attempt.status not in ("refused", "skipped"):
                name = f"{attempt.adapter} · {attempt.model}" if attempt.model else attempt.adapter
                groups.setdefault(name, []).append(attempt)
    times = {name: sum(_end(each, now) - each.started for each in group) for name, group in groups.items()}
    costs = {name: _sum(each.cost_usd for each in group) for name, group in groups.items()}
    time, cost = sum(times.values()) or 1.0, sum(known for known in costs.values() if known) or None
    shares = [
        Share(
            name=name,
            attempts=len(group),
            seconds=times[name],
            tokens=_sum(_tokens(each) for each in group),
            cost_usd=costs[name],
            time_part=round(times[name] / time * WIDTH, 1),
            cost_part=None
            if cost is None or (spent := costs[name]) is None
            else round(spent / cost * WIDTH, 1),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(shares, key=lambda share: share.seconds, reverse=True))


def _tokens(attempt: AttemptView) -> int | None:
    return _sum((attempt.input_tokens, attempt.output_tokens))


def _sum(values: Iterable[T | None]) -> T | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None
