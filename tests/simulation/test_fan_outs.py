"""Seeded fan-outs whose runtimes crash, hang, limit and lie, and whose parents cancel; each life is judged.

``CUSTODES_SEEDS=10000`` lives that many (``--full`` does), ``CUSTODES_SEED=7`` lives one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.fan_outs.invariants import INVARIANTS, outcomes_of
from support.fan_outs.life import Life
from support.fan_outs.simulation import build, judge, live
from support.fan_outs.stage import DEEDS
from support.puppets import Violation

SEEDS = int(os.environ.get("CUSTODES_SEEDS", "200"))
FULL_SEEDS = 10_000
PORTIONS = 20


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)
    return build(tmp_path / "project")


def judged(seed: int, project: Path) -> Life:
    try:
        life = live(seed, project)
        judge(life)
    except Violation as violation:
        command = f"CUSTODES_SEED={seed} {sys.executable} -m pytest {__file__}"
        pytest.fail(f"seed {seed}: {violation}\nreplay: {command}")
    return life


@pytest.mark.skipif("CUSTODES_SEED" in os.environ, reason="one seed is replayed")
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_invariants_hold_for_every_seed(project: Path, portion: int) -> None:
    """Acceptance F2, F3 and F8, and design section 8."""
    for seed in range(portion, SEEDS, PORTIONS):
        judged(seed, project)


@pytest.mark.full
@pytest.mark.skipif("CUSTODES_SEED" in os.environ, reason="one seed is replayed")
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_invariants_hold_for_ten_thousand_seeds(project: Path, portion: int) -> None:
    for seed in range(SEEDS + portion, FULL_SEEDS, PORTIONS):
        judged(seed, project)


@pytest.mark.skipif("CUSTODES_SEED" not in os.environ, reason="no seed is replayed")
def test_replay(project: Path) -> None:
    judged(int(os.environ["CUSTODES_SEED"]), project)


def test_the_same_seed_lives_the_same_life(project: Path) -> None:
    for seed in range(10):
        assert history(live(seed, project)) == history(live(seed, project))


def history(life: Life) -> list[object]:
    """Everything of it but what real clocks say."""
    numbers = {run_id: number for number, run_id in enumerate(life.order)}
    return [
        *((call.deed, call.pool, call.at, call.ended_at, numbers[call.run_id]) for call in life.calls),
        *((at, type(event).__name__, numbers[event.run_id]) for at, event in life.events),
        *((outcome.status, len(outcome.attempts)) for outcome in outcomes_of(life)),
    ]


def test_the_lives_are_eventful(project: Path) -> None:
    """So that no invariant holds for want of events."""
    lives = [live(seed, project) for seed in range(150)]
    outcomes = [outcome for life in lives for outcome in outcomes_of(life)]
    calls = [call for life in lives for call in life.calls]
    rows = [row for life in lives for row in life.rows]
    assert {call.deed for call in calls} == DEEDS.keys()
    statuses = Counter(outcome.status for outcome in outcomes)
    assert min(statuses[each] for each in ("done", "failed", "refused", "cancelled", "unknown")) > 10
    refusals = Counter(outcome.refusal.category for outcome in outcomes if outcome.refusal is not None)
    assert {"budget", "capacity", "disabled"} <= refusals.keys()
    limits = {o.refusal.shortfall.limit for o in outcomes if o.refusal and o.refusal.shortfall}
    assert {"children", "wall_seconds", "tokens", "usd"} <= limits
    assert sum(row.probe for row in rows) > 10
    assert sum(len(outcome.attempts) > 1 for outcome in outcomes) > 10
    assert sum(call.request.mutable for call in calls) > 100
    assert sum(len(life.leftovers) for life in lives) > 3
    assert sum(len(life.nested) for life in lives) > 10
    assert len(INVARIANTS) == 18
