"""The seeds find the bugs that are planted: so a life that is judged well says something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.fan_outs.invariants import INVARIANTS
from support.fan_outs.planted import PLANTED, Planted
from support.fan_outs.simulation import build, live
from support.puppets import Violation

WITHIN = 2_000
"""Seeds. Most are found by the first dozen, none by fewer than one in two hundred."""


def _cases() -> list[Any]:
    """The rare ones take their time."""
    return [
        pytest.param(planted, id=planted.what, marks=pytest.mark.full if planted.rare else ())
        for planted in PLANTED
    ]


@pytest.mark.parametrize("planted", _cases())
def test_the_seeds_find_it(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[..., None]
) -> None:
    """By the invariant that stands for the rule. The report's ``seeds`` says how many lives it took."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)
    project = build(tmp_path / "project")
    planted.plant(monkeypatch)
    for seed in range(WITHIN if planted.rare else WITHIN // 5):
        try:
            planted.found_by(live(seed, project))
        except Violation as found:
            record_property("seeds", seed + 1)
            print(f"{planted.what}: found in {seed + 1} seeds: {str(found)[:100]}")
            return
    pytest.fail(f"no seed finds that {planted.what}")


@pytest.mark.parametrize("planted", [pytest.param(each, id=each.what) for each in PLANTED if each.rare])
def test_the_rare_ones_can_be_planted(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked for seldom; that what they are planted in is still there shows at once."""
    planted.plant(monkeypatch)


def test_every_invariant_finds_something() -> None:
    assert {planted.found_by for planted in PLANTED} == set(INVARIANTS)
