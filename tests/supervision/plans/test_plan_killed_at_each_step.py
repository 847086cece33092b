"""A plan whose host is killed with -9 at each step of its first dispatch, and at each of its own checkpoints.

That dispatch is mutable. The ordinary run kills at the plan's own; ``--full`` at every step on both loops.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

import custodes
from custodes.supervision.plans.plan import Plan, Step
from custodes.supervision.plans.plan_resume import resume_plan
from custodes.supervision.plans.plan_run import PlanEnd
from custodes.supervision.record.record_file import RecordFile
from support.doomed_host import run_doomed
from support.steps import PLAN_STEPS, STEPS
from support.steps import Step as KilledAt
from support.writers import project_of

WORKER = """\
import sys
name = sys.stdin.read().split()[0]
with open("effects", "a") as effects:
    effects.write(name + "\\n")
print("at work", file=sys.stderr, flush=True)
print('{"summary": "well"}')
"""
PLAN = Plan(
    steps=(
        Step(id="write", role="implementer", prompt="write", model="worker", scope=("src",)),
        Step(id="read", role="reviewer", prompt="read", model="worker", needs=("write",)),
    )
)


def _cases() -> list[Any]:
    chosen = {step.name: ("asyncio", "trio")[number % 2] for number, step in enumerate(PLAN_STEPS)}
    return [
        pytest.param(
            step,
            loop,
            id=f"{step.name}-{loop}",
            marks=() if chosen.get(step.name) == loop else pytest.mark.full,
        )
        for step in (*PLAN_STEPS, *STEPS)
        if not step.name.startswith("budget")
        for loop in ("asyncio", "trio")
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("CUSTODES_RUN", raising=False)
    return project_of(tmp_path, worker=WORKER)


async def _plan_run(project: Path) -> str | None:
    async with RecordFile(project) as file:
        return next((plan.plan_run for plan in await file.latest_plans(2)), None)


async def _resume(project: Path, run: str) -> PlanEnd:
    async with custodes.Supervision(project) as supervision, supervision.conversation("heir") as parent:
        return await resume_plan(parent, run, plan=PLAN)


@pytest.mark.parametrize(("step", "loop"), _cases())
def test_a_resume_finishes_it_or_stops_and_writes_nothing_twice(
    project: Path, step: KilledAt, loop: str
) -> None:
    """Acceptance F16 and F21. It stops only where a runtime may have been called and no end is on record."""
    assert run_doomed(project, PLAN, step, backend=loop) == -signal.SIGKILL, f"{step.name} was never reached"
    run = anyio.run(_plan_run, project)
    if run is None:
        assert step.row == "none"
        assert not (project / "effects").exists()
        return
    end = anyio.run(_resume, project, run, backend=loop)
    effects = (project / "effects").read_text().split() if (project / "effects").exists() else []
    assert effects.count("write") <= 1
    statuses = [outcome.status for outcome in end.outcomes]
    if step.row == "open":
        assert (statuses, end.uncertain) == (["unknown", "refused"], ("write",))
        assert "read" not in effects
    else:
        assert statuses == ["done", "done"]
        assert effects.count("write") == 1
        assert effects.count("read") in (1, 2)
