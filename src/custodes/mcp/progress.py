"""What a child is seen doing, as one sentence for a progress notification."""

from __future__ import annotations

from custodes.supervision.events import (
    AttemptEnded,
    AttemptRefused,
    AttemptStarted,
    ChildEnded,
    ChildQueued,
    ChildWaiting,
    Event,
)

_WAITS = {
    "slot": "waits for a slot",
    "scope": "waits for its scope",
    "recovery": "waits for a pool to recover",
}


def sentence(name: str, event: Event) -> str | None:
    """None for what is not worth a notification. ``name`` is the child's."""
    said = _said(event)
    return f"{name}: {said}" if said else None


def _said(event: Event) -> str | None:
    match event:
        case ChildQueued():
            return f"queued as {event.role}"
        case ChildWaiting():
            seconds = f", {event.seconds:.0f} s" if event.seconds is not None else ""
            return _WAITS.get(event.reason, f"waits for {event.reason}") + seconds
        case AttemptStarted():
            model = f" ({event.model})" if event.model else ""
            probe = ", as the pool's one probe" if event.probe else ""
            after = f", falling back after {event.fallback_reason}" if event.fallback_reason else ""
            return f"runs on {event.pool}{model}{probe}{after}"
        case AttemptRefused():
            return f"refused: {event.refusal.reason}"
        case AttemptEnded() if event.failure is not None:
            return f"{event.pool} failed: {event.failure.category}: {event.failure.reason}"
        case ChildEnded():
            return event.outcome.status
    return None
