"""The rows of a conversation's tree: children below their parents. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from custodes.supervision.record.run_view import AttemptView, RunView, by_descent


class TreeRow(msgspec.Struct, frozen=True, kw_only=True):
    """``depth`` is 0 for a child of the conversation itself, 1 for a child's child, and so on."""

    run: RunView
    depth: int

    @property
    def last(self) -> AttemptView:
        return self.run.attempts[-1]


def tree_rows(runs: Sequence[RunView]) -> tuple[TreeRow, ...]:
    return tuple(TreeRow(run=run, depth=level) for level, run in by_descent(runs))


def element_id(prefix: str, *parts: str) -> str:
    """An id for an element and a selector, whatever characters a name of somebody's own holds."""
    return f"{prefix}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"
