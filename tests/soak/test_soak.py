"""Many surfaces at once on one project, killed at random: a minute of what scripts/soak does for hours."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from support.soak.soak import soaking

MINUTE = 60.0


@pytest.mark.full
def test_a_minute_of_random_kills_breaks_no_invariant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design section 8, with every surface at work on one project. ``CUSTODES_SEED=7`` makes its choices."""
    seed = int(os.environ.get("CUSTODES_SEED", "12"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with soaking(tmp_path / "soak", seed=seed, seconds=MINUTE) as soak:
        anyio.run(soak.run, backend="trio")
        assert soak.crew.faults == [], f"seed {seed}"
        assert soak.crew.done["outcome done"] > 0
        assert soak.crew.hits
