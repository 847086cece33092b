"""Work, and a fan-out for it, as most tests ask for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from custodes import FanOut, Supervision
from custodes.supervision.work import Work


def review(prompt: str = "look", **fields: Any) -> Work:
    """It changes nothing."""
    return Work(role="reviewer", prompt=prompt, **fields)


def implement(*scope: str, prompt: str = "change") -> Work:
    """It may write there."""
    return Work(role="implementer", prompt=prompt, scope=scope)


@asynccontextmanager
async def fanning_out(project: Path, conversation: str = "c") -> AsyncIterator[FanOut]:
    """A host with a fan-out of that conversation."""
    with anyio.fail_after(60):
        async with (
            Supervision(project) as supervision,
            supervision.conversation(conversation) as parent,
            parent.fan_out() as fan,
        ):
            yield fan
