"""Work as most tests ask for it."""

from __future__ import annotations

from typing import Any

from custodes.supervision.work import Work


def review(prompt: str = "look", **fields: Any) -> Work:
    """It changes nothing."""
    return Work(role="reviewer", prompt=prompt, **fields)


def implement(*scope: str, prompt: str = "change") -> Work:
    """It may write there."""
    return Work(role="implementer", prompt=prompt, scope=scope)
