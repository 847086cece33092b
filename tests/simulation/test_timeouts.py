"""Time as children have it, on a clock of the test's own."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import custodes
from custodes import Work
from custodes.adapters.port import DispatchResult
from support.fan_outs.life import Life
from support.fan_outs.parents import settle_on
from support.fan_outs.simulation import build, judge, life_of, play
from support.fan_outs.stage import DEEDS, Stage


def test_f9_a_childs_timeout_counts_its_own_time_and_not_its_wait_for_a_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acceptance F9."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)

    async def steady(stage: Stage) -> DispatchResult:
        await anyio.sleep(0.9)
        return stage.answers()

    async def host(life: Life) -> None:
        settle_on(life, enabled=True, max_parallel=1)
        async with (
            custodes.Supervision(life.project, observer=life.observe) as supervision,
            supervision.conversation("c") as parent,
        ):
            async with parent.fan_out() as fan:
                for _ in range(16):
                    fan.start(Work(role="reviewer", prompt="look", timeout=1))
        life.alone.extend(fan.outcomes)

    monkeypatch.setitem(DEEDS, "answer", steady)
    life = life_of(9, build(tmp_path / "project"))
    life.deeds = {"answer": 1}
    play(life, host)
    judge(life)
    assert [outcome.status for outcome in life.alone] == ["done"] * 16
    assert 16 * 0.9 <= life.ended_at < 16
    assert max(call.at for call in life.calls) > 13
