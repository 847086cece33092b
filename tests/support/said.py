"""What adapters make of a failure, by what it was: the rows of the table in docs/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custodes.adapters import DispatchResult

Row = dict[str, Any]

LIMIT: Row = {"category": "capacity", "retryable": True, "outcome": "known_failed"}
BILLING: Row = {"category": "unavailable", "retryable": False, "outcome": "known_failed"}
AUTH: Row = {"category": "auth", "retryable": False, "outcome": "known_failed"}
REFUSED: Row = {"category": "unavailable", "retryable": True, "outcome": "known_failed"}
"""No connection was taken."""
SERVER: Row = {"category": "provider", "retryable": True, "outcome": "unknown"}
INVALID: Row = {"category": "invalid", "retryable": False, "outcome": "known_failed"}
TIMEOUT: Row = {"category": "timeout", "retryable": False, "outcome": "unknown"}
OTHER: Row = {"category": "provider", "retryable": False, "outcome": "unknown"}
"""Anything else, a result that was cut off among it."""


def assert_failed(result: DispatchResult, row: Mapping[str, Any]) -> None:
    assert result.failure is not None
    assert {field: getattr(result.failure, field) for field in row} == row
