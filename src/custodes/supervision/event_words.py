"""Each event in words, the same on every surface. Pure; what a surface cannot show it cleans itself."""

from __future__ import annotations

from custodes.adapters.port import Failure
from custodes.supervision.events import (
    AttemptEnded,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
    PermissionAnswered,
    PermissionAsked,
)
from custodes.supervision.work import Outcome


def sentence(name: str, event: Event) -> str | None:
    """What happened to the child of this name; None for what the event that follows says, too, and for what
    happens too often to be told in words."""
    words = _said(event)
    return f"{name}: {words}" if words else None


def _said(event: Event) -> str | None:
    match event:
        case ChildQueued():
            return f"queued as {event.role}"
        case ChildWaiting():
            return waits(event.reason, event.seconds)
        case AttemptStarted():
            words = runs(event.pool, event.model, probe=event.probe, covers=event.fallback_reason)
            return f"{words}, asked once more, since its answer did not fit" if event.repair else words
        case PermissionAsked():
            detail = f": {event.detail}" if event.detail else ""
            return (
                f"asks leave for {event.tool}{detail}; `cos runs answer {event.ask} allow` or `deny`, "
                f"denied in {event.seconds:.0f} s"
            )
        case PermissionAnswered():
            return f"{'may' if event.answer == 'allow' else 'may not'}, by {event.by}"
        case AttemptEnded() if event.failure is not None:
            return fails(event.pool, event.failure)
        case ChildEnded():
            return ended(event.outcome)
    return None


def waits(reason: str, seconds: float | None) -> str:
    """``seconds`` is what is left of it, where that is known."""
    if reason == "recovery":
        return "waits for recovery" if seconds is None else f"waits {seconds:.0f} s for the pool to recover"
    return f"waits for {'its scope' if reason == 'scope' else f'a {reason}'}"


def runs(pool: str, model: str | None, *, probe: bool, covers: str | None) -> str:
    """``covers`` is the category of what the attempt stands in for."""
    as_probe = ", as the one probe that may heal the pool" if probe else ""
    after = f", {falls_back(covers)}" if covers else ""
    return f"runs on {pool_and_model(pool, model)}{as_probe}{after}"


def pool_and_model(pool: str, model: str | None) -> str:
    return f"{pool} ({model})" if model else pool


def falls_back(covers: str) -> str:
    if covers == "invalid":  # nothing was tried: the words of a request name what its adapter does not have
        return "falling back, as what was asked for is invalid"
    return f"falling back after {covers}"


def fails(pool: str, failure: Failure) -> str:
    wait = f", retry after {failure.retry_after_s} s" if failure.retry_after_s is not None else ""
    return f"{pool} failed: {failure.category}{wait}: {failure.reason}"


def ended(outcome: Outcome) -> str:
    """How it ended: its summary, or the category of what went wrong, whose reason the result itself gives."""
    if outcome.evidence is not None:
        return f"{outcome.status}: {outcome.evidence.summary}"
    wrong = outcome.refusal or outcome.failure
    return f"{outcome.status}: {wrong.category}" if wrong is not None else outcome.status
