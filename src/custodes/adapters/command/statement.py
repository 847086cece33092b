"""What a program may say of its own failure, in one JSON object on stdout (README.md, "Failures")."""

from __future__ import annotations

import msgspec

from custodes.adapters import failures, waits
from custodes.adapters.port import Category, Certainty, Failure

_MAX_BYTES = 64_000
_KINDS: dict[Category, failures.Kind] = {
    "capacity": "limit",
    "auth": "auth",
    "unavailable": "missing",
    "timeout": "timeout",
    "provider": "other",
    "invalid": "invalid",
}


class _Stated(msgspec.Struct, frozen=True, kw_only=True):
    category: Category
    retry_after_s: float | None = None
    retryable: bool | None = None
    outcome: Certainty | None = None
    overloaded: bool = False


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failure: msgspec.Raw


class Statement(msgspec.Struct, frozen=True):
    """A ``{"failure": …}`` object; ``stated`` is None where its content is not the protocol's."""

    stated: _Stated | None

    def failure(self, who: str, ending: str, *, mutable: bool) -> Failure:
        """The Failure it comes to. The reason is ours, whatever else the object holds, with how it ended.

        A statement may narrow the table (not retryable, outcome unknown) but not make a timeout or a
        rejected login something to be sent again. Of work that may write, only a program's own word makes a
        failure ``known_failed``.
        """
        stated = self.stated
        if stated is None:
            detail = f"stated a failure that does not fit the protocol; {ending}"
            row = failures.failure("other", who, detail=detail)
            return msgspec.structs.replace(row, accepted=mutable)
        wait = waits.whole(stated.retry_after_s) if stated.retry_after_s is not None else None
        kind = (
            "overloaded" if stated.category == "provider" and stated.overloaded else _KINDS[stated.category]
        )
        row = failures.failure(kind, who, detail=ending, retry_after_s=wait)
        if kind not in ("limit", "overloaded"):
            row = msgspec.structs.replace(
                row, reason=f"{who} stated a failure of category '{stated.category}' ({ending})"
            )
        may_retry = row.retryable or stated.category in ("provider", "unavailable")
        outcome = stated.outcome or ("unknown" if mutable else row.outcome)
        return msgspec.structs.replace(
            row,
            retryable=may_retry and (row.retryable if stated.retryable is None else stated.retryable),
            retry_after_s=wait if may_retry else None,
            outcome="unknown" if stated.category == "timeout" else outcome,
            accepted=mutable and stated.outcome != "known_failed",
        )


def read_statement(line: bytes) -> Statement | None:
    """The statement in a line (or a whole output); None where it is none."""
    line = line.strip()
    if len(line) > _MAX_BYTES or not line.startswith(b"{") or b'"failure"' not in line:
        return None
    try:
        raw = msgspec.json.decode(line, type=_Line).failure
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    try:
        return Statement(msgspec.json.decode(raw, type=_Stated))
    except (msgspec.DecodeError, RecursionError):
        return Statement(None)
