"""What a conversation's children have brought their parent, as one immutable value (seed 000: "the parent
receives an EvidenceBundle or an explicit failure").

A bundle answers what a parent asks next: what was found (``slices``), what else came to light
(``discoveries``), what that was built upon turned out wrong (``backtracks``), on what it must not rely
(``degraded``), and what never ran (``refusals``). It holds no transcript; a slice links its native session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Self

import msgspec
from msgspec.structs import replace

from custodes.supervision.evidence import MAX_TEXT, Evidence
from custodes.supervision.work import Attempt, Outcome, Status

MAX_BUNDLE_BYTES = 1024 * 1024
"""The JSON that a bundle comes to at most, but for the few bytes around it. Past it the oldest entries are
left out, whole, and counted; the newest one always stays. Each is still on record under its run id."""


class NativeSession(msgspec.Struct, frozen=True, kw_only=True):
    """Where the transcript is: the adapter, and the runtime's own id of the thread."""

    adapter: str
    id: str


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """By which piece of work: its run, its label, its role."""

    run_id: str
    name: str
    role: str


class BundledSlice(_Told, frozen=True, kw_only=True):
    """One child's evidence. Its discoveries and backtrack stand in the bundle's own lists instead."""

    evidence: Evidence
    native: NativeSession | None = None


class Discovery(_Told, frozen=True, kw_only=True):
    """Found beside the task: a parent decides whether it becomes work."""

    text: str


class BacktrackTold(_Told, frozen=True, kw_only=True):
    """The child says that the result of the earlier ``step`` is wrong, and why.

    ``followed``: the plan ran that step again, with all that depends on it. Else ``why_not`` says why the
    result still stands as it was, and the parent has to judge it.
    """

    step: str
    reason: str
    followed: bool = False
    why_not: str = ""


class Degraded(_Told, frozen=True, kw_only=True):
    """A role whose work is worth less than was asked for: it ended without evidence, or it was done by
    another route than the first choice (then ``status`` is ``done``, and its slice is there)."""

    status: Status
    reason: str


class Refused(_Told, frozen=True, kw_only=True):
    """Work that never ran, so that nothing of it can be relied on or feared. ``retry_after_s`` is when it
    might, in seconds."""

    category: str
    reason: str
    retry_after_s: int | None = None


Entry = BundledSlice | Discovery | BacktrackTold | Degraded | Refused


class EvidenceBundle(msgspec.Struct, frozen=True, kw_only=True):
    """In the order in which the work ended (a plan's: in the order of its steps). ``left_out`` counts the
    entries that did not fit."""

    conversation: str
    slices: tuple[BundledSlice, ...] = ()
    discoveries: tuple[Discovery, ...] = ()
    backtracks: tuple[BacktrackTold, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    refusals: tuple[Refused, ...] = ()
    left_out: int = 0


class Gathering:
    """The growing side of a bundle: told of each outcome once, it makes the value at any time."""

    def __init__(self, conversation: str) -> None:
        self._conversation = conversation
        self._kept: deque[tuple[int, Entry]] = deque()
        self._size = 0
        self._left_out = 0

    @classmethod
    def of(
        cls, conversation: str, outcomes: Iterable[Outcome], backtracks: Iterable[BacktrackTold] = ()
    ) -> Self:
        """Of a plan's outcomes: what came of each backtrack is told in place of what its step said."""
        gathering = cls(conversation)
        for outcome in outcomes:
            gathering.add(outcome, backtracks=False)
        gathering.take(backtracks)
        return gathering

    def add(self, outcome: Outcome, *, backtracks: bool = True) -> None:
        self.take(e for e in entries_of(outcome) if backtracks or not isinstance(e, BacktrackTold))

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            size = len(msgspec.json.encode(entry)) + 1
            self._kept.append((size, entry))
            self._size += size
        while self._size > MAX_BUNDLE_BYTES and len(self._kept) > 1:
            self._size -= self._kept.popleft()[0]
            self._left_out += 1

    @property
    def bundle(self) -> EvidenceBundle:
        kept = [entry for _, entry in self._kept]
        return EvidenceBundle(
            conversation=self._conversation,
            slices=tuple(each for each in kept if isinstance(each, BundledSlice)),
            discoveries=tuple(each for each in kept if isinstance(each, Discovery)),
            backtracks=tuple(each for each in kept if isinstance(each, BacktrackTold)),
            degraded=tuple(each for each in kept if isinstance(each, Degraded)),
            refusals=tuple(each for each in kept if isinstance(each, Refused)),
            left_out=self._left_out,
        )


def entries_of(outcome: Outcome) -> Iterator[Entry]:
    """What one outcome brings. A dry run, and what the host's own dispatch returned, bring nothing."""
    who = {"run_id": outcome.run_id, "name": outcome.name, "role": outcome.role}
    last = outcome.attempts[-1] if outcome.attempts else None
    evidence = outcome.evidence
    if evidence is not None:
        yield BundledSlice(
            **who, evidence=replace(evidence, discoveries=(), backtrack=None), native=native_session(last)
        )
        for text in evidence.discoveries:
            yield Discovery(**who, text=text)
        if (told := backtrack_of(outcome)) is not None:
            yield told
    if outcome.status == "refused" and outcome.refusal is not None:
        yield Refused(
            **who,
            category=outcome.refusal.category,
            reason=outcome.refusal.reason[:MAX_TEXT],
            retry_after_s=outcome.refusal.retry_after_s,
        )
    elif (reason := _degraded(outcome, last)) is not None:
        yield Degraded(**who, status=outcome.status, reason=reason[:MAX_TEXT])


def backtrack_of(outcome: Outcome) -> BacktrackTold | None:
    """What the outcome says of an earlier step, so far recorded only."""
    if outcome.evidence is None or (said := outcome.evidence.backtrack) is None:
        return None
    return BacktrackTold(
        run_id=outcome.run_id, name=outcome.name, role=outcome.role, step=said.step, reason=said.reason
    )


def native_session(attempt: Attempt | None) -> NativeSession | None:
    if attempt is None or attempt.native_thread_id is None:
        return None
    return NativeSession(adapter=attempt.adapter, id=attempt.native_thread_id)


def _degraded(outcome: Outcome, last: Attempt | None) -> str | None:
    if outcome.status in ("failed", "unknown", "cancelled"):
        wrong = outcome.failure or outcome.refusal
        return f"{wrong.category}: {wrong.reason}" if wrong is not None else outcome.status
    if outcome.status == "done" and outcome.evidence is None and outcome.native is None:
        return "it is done, but what it said of it is lost"
    if last is not None and last.fallback_reason is not None:
        return f"done on {last.pool}, since the first choice failed as {last.fallback_reason}"
    return None
