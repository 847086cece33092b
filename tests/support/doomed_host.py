"""A host in a process of its own that is killed at one step of its dispatch."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import anyio

import custodes
from custodes import Budget, Work
from custodes.supervision.plans.plan import Plan
from custodes.supervision.plans.plan_run import run_plan
from support.steps import Step, die_at, step_named

BUDGET = Budget(tokens=10_000_000, children=10, wall_seconds=600)

_processes = multiprocessing.get_context("forkserver")
"""Each host is forked from a small server that has imported what it needs: half a second saved each time."""
_processes.set_forkserver_preload(["support.doomed_host", "custodes.supervision.supervision"])


def run_doomed(
    project: Path, works: tuple[Work, ...] | Plan, step: Step, *, passing: int = 1, backend: str
) -> int | None:
    """Run a host until the step kills it; more than one work make a fan-out under a budget, or a plan.

    :returns: how its process ended: -9 where the step was reached.
    """
    host = _processes.Process(
        target=_live, args=(dict(os.environ), project, works, step.name, passing, backend)
    )
    host.start()
    host.join(timeout=60)
    if host.exitcode is None:
        host.kill()
        host.join()
        raise TimeoutError(f"the host neither ended nor came to '{step.name}'")
    return host.exitcode


def _live(
    environment: dict[str, str],
    project: Path,
    works: tuple[Work, ...] | Plan,
    name: str,
    passing: int,
    backend: str,
) -> None:
    os.environ.clear()  # the server's is that of the first test
    os.environ.update(environment)
    die_at(step_named(name), passing)
    anyio.run(_host, project, works, backend=backend)


async def _host(project: Path, works: tuple[Work, ...] | Plan) -> None:
    async with custodes.Supervision(project) as supervision, supervision.conversation("killed") as parent:
        if isinstance(works, Plan):
            await run_plan(parent, works)
            return
        if len(works) == 1:
            await parent.dispatch(works[0])
            return
        async with parent.fan_out(budget=BUDGET) as fan:
            for work in works:
                fan.start(work)
