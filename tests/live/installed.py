"""Targets whose program is here."""

from __future__ import annotations

import pytest

from live.harness import Target


def installed(target: Target) -> Target:
    """The test is skipped where its program is not."""
    if target.program is None:
        pytest.skip(f"{target.binary} is not installed: scripts/runtimes install {target.adapter}")
    return target
