"""A project of its own for each test, with two adapters, and a Hub over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support import scripted
from support.hub import Browser, browser
from support.projects import cos, programs, project, tiered

__all__ = ["cos", "page", "pair", "programs", "project", "tiered"]


@pytest.fixture
def pair(project: Path) -> Path:
    """Supervision is on, over two adapters with two models each."""
    scripted.install(project, "alpha", "beta")
    return project


@pytest.fixture
async def page(project: Path, anyio_backend: str) -> AsyncIterator[Browser]:
    async with browser(project) as found:
        yield found
