"""What ran, as lines: a run, its attempts, and what the health of its pool decided for each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from custodes.cli.output import paint, plain
from custodes.supervision.asks.permission_table import AskRow
from custodes.supervision.event_words import falls_back
from custodes.supervision.record.clock import local_time
from custodes.supervision.record.run_view import AttemptView, ConversationView, RunView, Used, by_descent

STYLES = {"done": "green", "running": "cyan", "failed": "red", "unknown": "red", "skipped": "dim"}


def conversation_line(conversation: ConversationView) -> str:
    statuses = ", ".join(f"{count} {status}" for status, count in conversation.by_status.items())
    words = [
        f"{paint(plain(conversation.conversation), 'bold')}  {local_time(conversation.started)}",
        statuses,
    ]
    if conversation.abandoned:
        words.append(paint(f"{conversation.abandoned} left by an owner that died", "red"))
    return "  ".join((*words, *used_words(conversation.used)))


def run_line(run: RunView) -> str:
    names = plain(run.name) if run.name == run.role else f"{plain(run.name)}  {run.role}"
    status = paint(run.status, STYLES.get(run.status, "yellow"))
    took = 0.0 if run.ended is None else run.ended - run.started
    seconds = [f"{took:.1f} s"] if took else []
    left = [paint("its owner died", "red")] if run.abandoned else []
    return "  ".join((paint(names, "bold"), status, *left, *seconds, paint(f"run {run.run_id}", "dim")))


def ask_line(row: AskRow) -> str:
    left = max(0.0, row.deadline - time.time())
    what = f"{plain(row.tool)}: {plain(row.detail)}" if row.detail else plain(row.tool)
    who = f"{plain(row.name)}  {row.role}" if row.name != row.role else row.role
    return f"{paint(row.id, 'bold')}  {who}  {what}  {paint(f'denied in {left:.0f} s', 'yellow')}"


def tree_lines(runs: Sequence[RunView], *, attempts: bool = True) -> Iterator[str]:
    """Each run, and below it each attempt, and the runs that it started."""
    for level, run in by_descent(runs):
        yield f"{'  ' * level}{run_line(run)}"
        for attempt in run.attempts if attempts else ():
            yield f"{'  ' * level}  {attempt.number}. {attempt_words(attempt)}"


def attempt_words(row: AttemptView) -> str:
    """Adapter, model, effort and health decision; then how it ended and what it took."""
    words = [_where(row), _health(row), _end(row)]
    if row.ended is not None and row.ended > row.started:
        words.append(f"{row.ended - row.started:.1f} s")
    words.extend(used_words(row))
    return "; ".join(word for word in words if word)


def used_words(used: Used | AttemptView) -> Iterator[str]:
    if used.input_tokens is not None or used.output_tokens is not None:
        yield f"{used.input_tokens or 0} tokens in, {used.output_tokens or 0} out"
    if used.cost_usd is not None:
        yield f"{used.cost_usd:.4f} USD"


def _where(row: AttemptView) -> str:
    if row.adapter is None:
        return "no route"
    words = [plain(row.adapter)]
    words += [f"model {plain(row.model)}"] if row.model else []
    words += [f"effort {plain(row.effort)}"] if row.effort else []
    if row.served_model not in (None, row.model):
        words.append(f"answered by {plain(row.served_model or '')}")
    words += [falls_back(plain(row.fallback_reason))] if row.fallback_reason else []
    return ", ".join(words)


def _health(row: AttemptView) -> str:
    if row.health_state is None:  # nothing was let in: refused before its pool was asked, or by it
        return f"pool {plain(row.pool)}" if row.pool else ""
    probe = ", let in as its one probe" if row.probe else ", let in"
    return f"pool {plain(row.pool or '')} {row.health_state.replace('_', ' ')}{probe}"


def _end(row: AttemptView) -> str:
    if row.abandoned:
        return paint("open, but its owner died: the next start closes it as unknown", "red")
    words: str = row.status
    if row.reason and row.reason != row.status:
        words = row.reason if row.reason.startswith(row.status) else f"{row.status}: {plain(row.reason)}"
    if row.status == "refused" and row.retry_after_s is not None:
        words += f", the soonest recovery in {row.retry_after_s} s"
    return paint(words, STYLES.get(row.status, "yellow"))
