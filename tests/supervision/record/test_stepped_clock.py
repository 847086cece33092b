"""A wall clock that is stepped while work runs: what is on record took as long as it took."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import custodes
from custodes.adapters.port import DispatchRequest, DispatchResult, ProgressSink
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_run import run_plan
from custodes.supervision.record.record_file import RecordFile
from custodes.supervision.record.trace import trace
from custodes.supervision.work import Budget, Work
from support import scripted

HOUR = 3_600.0


@pytest.mark.anyio
@pytest.mark.parametrize("step", [-5 * HOUR, 5 * HOUR])
async def test_it_makes_no_attempt_fan_out_or_plan_longer_or_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    script = scripted.install(tmp_path, "one")
    right = time.time

    async def stepping(_: DispatchRequest, __: ProgressSink) -> DispatchResult:
        monkeypatch.setattr(time, "time", lambda: right() + step)
        return DispatchResult(text='{"summary": "seen"}')

    async with custodes.Supervision(tmp_path) as supervision, supervision.conversation("c") as parent:
        script.acts.append(stepping)
        async with parent.fan_out(name="shards", budget=Budget(tokens=1_000_000)) as fan:
            fan.start(Work(role="reviewer", prompt="look"))
        monkeypatch.setattr(time, "time", right)
        script.acts.append(stepping)
        await run_plan(parent, Plan(steps=(Step(id="find", role="reviewer", prompt="find"),)))
        monkeypatch.setattr(time, "time", right)
    async with RecordFile(tmp_path) as file:
        found = await trace(tmp_path, "c")
        (plan,) = await file.plan_accounts("c", right())
    times = [(each.started, each.ended) for each in found.attempts]
    times += [(each.started, each.ended) for each in found.fan_outs]
    times += [(plan.plan.started, plan.plan.ended)]
    assert len(times) == 4
    for started, ended in times:
        assert ended is not None
        assert 0 <= ended - started < HOUR
