"""Where time and money went, as a picture: each child's attempts on one line of time, and each model's share.

Figures for the template; no style, so that the content policy needs no exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from custodes.supervision.record.run_view import AttemptView, RunView

T = TypeVar("T", int, float)

LANES = 40
"""Children that are drawn: the longest. The rest is counted."""
WIDTH = 1000.0


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """``x`` and ``width`` are thousandths of the whole time."""

    x: float
    width: float
    status: str
    title: str


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    run_id: str
    bars: tuple[Bar, ...]


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
    shares: tuple[Share, ...]


def picture(runs: Iterable[RunView], now: float) -> Picture:
    """:param now: wall seconds, the end of what still runs."""
    drawn = [run for run in runs if any(attempt.adapter for attempt in run.attempts)]
    begin = min((run.started for run in drawn), default=now)
    end = max((_end(attempt, now) for run in drawn for attempt in run.attempts), default=now)
    span = max(end - begin, 0.001)
    longest = sorted(drawn, key=lambda run: (run.ended or now) - run.started, reverse=True)[:LANES]
    chosen = {run.run_id for run in longest}
    lanes = tuple(
        Lane(
            name=run.name or run.role,
            run_id=run.run_id,
            bars=tuple(_bar(attempt, begin, span, now) for attempt in run.attempts if attempt.adapter),
        )
        for run in drawn
        if run.run_id in chosen
    )
    return Picture(span_s=span, lanes=lanes, left_out=len(drawn) - len(lanes), shares=_shares(drawn, now))


def _end(attempt: AttemptView, now: float) -> float:
    return attempt.ended if attempt.ended is not None else max(now, attempt.started)


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
