"""Progress as plain lines, where there is no terminal: one for each thing that matters."""

from __future__ import annotations

from custodes.cli.output import plain
from custodes.cli.progress import AttemptRow, Row, Tree
from custodes.supervision.events import (
    AttemptEnded,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
)


def line(before: Tree, after: Tree, event: Event) -> str | None:
    """What one event says, or None. ``before`` and ``after`` are the trees around it."""
    row = after.rows.get(event.run_id)
    if row is None:
        return None
    text = _text(before, row, event)
    return f"{plain(row.name)}: {text}" if text else None


def _text(before: Tree, row: Row, event: Event) -> str | None:
    match event:
        case ChildQueued():
            return f"queued as {row.role}"
        case ChildWaiting():
            return waiting(row.reason, event.seconds)
        case AttemptStarted():
            pool = before.pools.get(event.pool)
            return started(row.attempts[-1], healing=event.probe and pool is not None)
        case AttemptEnded() if event.failure is not None:
            return failed(row, event.number)
        case ChildEnded():
            return ended(row)
    return None


def waiting(reason: str, seconds: float | None) -> str:
    if reason == "recovery":
        return (
            f"waits {seconds:.0f} s for the pool to recover" if seconds is not None else "waits for recovery"
        )
    return f"waits for {'its scope' if reason == 'scope' else 'a ' + reason}"


def started(attempt: AttemptRow, *, healing: bool = False) -> str:
    words = f"runs on {attempt.pool}"
    if attempt.model:
        words += f" ({plain(attempt.model)})"
    if attempt.probe:
        words += ", as the pool's one probe" if not healing else ", as the one probe that may heal the pool"
    if attempt.fallback_reason:
        words += f", falling back after {attempt.fallback_reason}"
    return words


def failed(row: Row, number: int) -> str | None:
    attempt = next((a for a in row.attempts if a.number == number), None)
    if attempt is None or attempt.failure is None:
        return None
    failure = attempt.failure
    wait = f", retry after {failure.retry_after_s} s" if failure.retry_after_s is not None else ""
    return f"{attempt.pool} failed: {failure.category}{wait}: {plain(failure.reason)}"


def ended(row: Row) -> str:
    outcome = row.outcome
    if outcome is None:
        return row.state
    if outcome.evidence is not None:
        return f"{outcome.status}: {plain(outcome.evidence.summary)}"
    if outcome.refusal is not None:
        return f"{outcome.status}: {plain(outcome.refusal.reason)}"
    if outcome.failure is not None:
        return f"{outcome.status}: {outcome.failure.category}: {plain(outcome.failure.reason)}"
    return outcome.status
