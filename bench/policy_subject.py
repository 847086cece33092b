"""The policy as a contender of ``bench/policy.py``, and one stat of the settings file as the floor under it.

python -m bench.policy_subject {asyncio|trio|stat}
"""

from __future__ import annotations

import argparse
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import anyio

from bench.startup_subject import every_adapter
from bench.suite.contender import Figures, Spent, repeated, serve
from custodes import Supervision, Work
from custodes.adapters.registry import Registry
from custodes.policy import Catalog, RouteRequest, Settings, applies, resolve

SETTLED_S = 0.05
"""Past the tick of a file's time, so that its contents are taken from the cache."""


def disabled_project(folder: Path) -> Path:
    project = every_adapter(folder)
    settings_file(project).write_text('{"model_routing": {"enabled": false}}')
    time.sleep(SETTLED_S)
    return project


def settings_file(project: Path) -> Path:
    return project / ".coding-os" / "hub-settings.json"


def stat(project: Path, times: int) -> Figures:
    file = settings_file(project)

    def some() -> None:
        for _ in range(times):
            file.stat()

    return repeated(some, times)


def gate(project: Path, times: int) -> Figures:
    settings = Settings(project)

    def some() -> None:
        for _ in range(times):
            found = settings.read()
            applies(found.policy, found.module_enabled, "CHAOTIC")

    return repeated(some, times)


async def disabled(project: Path, times: int) -> Figures:
    async def host(work: Work) -> str:
        return work.prompt

    spent, work = Spent(), Work(role="reviewer", prompt="x")
    async with (
        Supervision(project) as supervision,
        supervision.conversation("bench", dispatch=host) as parent,
    ):
        await parent.dispatch(work)
        while not spent.enough:
            with spent.counting(times):
                for _ in range(times):
                    await parent.dispatch(work)
    return spent.figures()


def route(project: Path, times: int) -> Figures:
    catalog = Catalog.of(Registry.discover(project), readiness=False)
    policy, request = Settings(project).read().policy, RouteRequest(role="reviewer")

    def some() -> None:
        for _ in range(times):
            resolve(request, policy, catalog)

    return repeated(some, times)


def discovery(project: Path, times: int) -> Figures:
    def some() -> None:
        for _ in range(times):
            Registry.discover(project)

    return repeated(some, times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["asyncio", "trio", "stat"])
    subject = parser.parse_args().subject
    with tempfile.TemporaryDirectory() as on, tempfile.TemporaryDirectory() as off:
        project, without = every_adapter(Path(on)), disabled_project(Path(off))
        if subject == "stat":
            floor = {name: lambda times: stat(without, times) for name in ("gate", "disabled")}
            serve("", floor)
            return
        ours = {"disabled": lambda times: anyio.run(disabled, without, times, backend=subject)}
        if subject == "asyncio":  # the rest knows no loop
            ours |= {
                "gate": lambda times: gate(without, times),
                "route": lambda times: route(project, times),
                "discovery": lambda times: discovery(project, times),
            }
        serve(version("custodes"), ours)


if __name__ == "__main__":
    main()
