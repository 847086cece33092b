"""The program called in process, what it answered, and the events of a run to show."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from custodes.adapters.port import Failure
from custodes.supervision.events import AttemptEnded, AttemptStarted, ChildEnded, ChildQueued, Event
from custodes.supervision.evidence import AnalystEvidence
from custodes.supervision.work import Outcome


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as the one JSON document that it must be."""
        return json.loads(self.out)


Cos = Callable[..., Answer]


class Tiered(NamedTuple):
    """A project whose one adapter has two models in two pools and three efforts."""

    project: Path
    adapter: str


class Terminal(io.StringIO):
    """What a program takes for a person's terminal."""

    def isatty(self) -> bool:
        return True


def limited_and_covered(at: float) -> list[Event]:
    """Two children from ``at`` on: one meets a limit and is covered, one has not ended."""
    limit = Failure(
        category="capacity", reason="limited", retryable=True, retry_after_s=60, outcome="known_failed"
    )
    outcome = Outcome(
        run_id="first", role="analyst", name="first", status="done", evidence=AnalystEvidence(summary="well")
    )

    def started(number: int, pool: str, reason: str | None) -> AttemptStarted:
        return AttemptStarted(
            at=at,
            conversation="c",
            run_id="first",
            number=number,
            adapter=pool[0],
            model="m",
            effort=None,
            pool=pool,
            probe=False,
            fallback_reason=reason,
        )

    def ended(number: int, pool: str, failure: Failure | None) -> AttemptEnded:
        return AttemptEnded(
            at=at, conversation="c", run_id="first", number=number, pool=pool, seconds=0.5, failure=failure
        )

    return [
        ChildQueued(at=at, conversation="c", run_id="first", role="analyst", name="first"),
        ChildQueued(at=at, conversation="c", run_id="second", role="analyst", name="second"),
        started(1, "p:x", None),
        ended(1, "p:x", limit),
        started(2, "q:y", "capacity"),
        ended(2, "q:y", None),
        ChildEnded(at=at, conversation="c", run_id="first", outcome=outcome),
    ]
