"""Thousands of seeded lives of supervisor trees, each judged by its journal.

``CUSTODES_SEEDS=100000`` runs more of them; ``CUSTODES_SEED=7`` runs one.
"""

from __future__ import annotations

import os
import sys

import pytest

from support.invariants import INVARIANTS
from support.puppets import Violation
from support.simulation import simulate

SEEDS = int(os.environ.get("CUSTODES_SEEDS", "2000"))
PORTIONS = 20


def _simulate(seed: int) -> None:
    try:
        simulate(seed)
    except Violation as violation:
        command = f"CUSTODES_SEED={seed} {sys.executable} -m pytest {__file__}"
        pytest.fail(f"seed {seed}: {violation}\nreplay: {command}")


@pytest.mark.skipif("CUSTODES_SEED" in os.environ, reason="one seed is replayed")
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_invariants_hold_for_every_seed(portion: int) -> None:
    for seed in range(portion, SEEDS, PORTIONS):
        _simulate(seed)


@pytest.mark.skipif("CUSTODES_SEED" not in os.environ, reason="no seed is replayed")
def test_replay() -> None:
    _simulate(int(os.environ["CUSTODES_SEED"]))


def test_the_same_seed_lives_the_same_life() -> None:
    for seed in range(20):
        assert simulate(seed).journal == simulate(seed).journal


def test_the_lives_are_eventful() -> None:
    """So that no invariant holds for want of events."""
    worlds = [simulate(seed) for seed in range(200)]
    whats = [entry for world in worlds for entry in world.journal]
    assert {entry.what for entry in whats} == {"make", "start", "stop", "handle", "stopping"}
    assert sum(entry.detail.startswith("restarted together") for entry in whats) > 30
    assert sum(entry.detail.startswith("client") for entry in whats) > 30
    assert sum(len(world.failures) for world in worlds) > 10
    assert sum(len(judged) for world in worlds for judged in world.judgements.values()) > 80
    assert len(INVARIANTS) == 9
