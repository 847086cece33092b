"""The rows of a conversation's tree: children below their parents. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from custodes.supervision.run_view import AttemptView, RunView


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """``depth`` is 0 for a child of the conversation itself, 1 for a child's child, and so on."""

    run: RunView
    depth: int

    @property
    def last(self) -> AttemptView:
        return self.run.attempts[-1]

    @property
    def fallback(self) -> str:
        """Why the attempt that counts is not the first: the words of the one before it."""
        earlier = [attempt for attempt in self.run.attempts[:-1] if attempt.status != "done"]
        return earlier[-1].reason if earlier else ""


def tree_rows(runs: Iterable[RunView]) -> tuple[TreeRow, ...]:
    """Depth first, each level in the order of its start. A run whose parent is not among them stands at the
    top."""
    known = {run.run_id: run for run in runs}
    below: dict[str | None, list[RunView]] = {}
    for run in known.values():
        parent = run.attempts[0].parent_run
        below.setdefault(parent if parent in known and parent != run.run_id else None, []).append(run)
    rows: list[TreeRow] = []
    waiting = [(run, 0) for run in reversed(below.get(None, []))]
    while waiting:
        run, depth = waiting.pop()
        rows.append(TreeRow(run=run, depth=depth))
        waiting += [(child, depth + 1) for child in reversed(below.get(run.run_id, []))]
    return tuple(rows)


def element_id(prefix: str, *parts: str) -> str:
    """An id for an element and a selector, whatever characters a name of somebody's own holds."""
    return f"{prefix}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"
