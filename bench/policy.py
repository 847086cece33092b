"""What the policy costs: a cold `cos supervision show` over importing what it needs, and the disabled path.

    python bench/policy.py [--rounds 15]

Rounds are interleaved, so that a noisy machine is noisy for all; a ratio is the median of the ratios of the
rounds. The project has the adapters of every runtime configured, so that all of their descriptors are read.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import anyio

from custodes import Supervision, Work
from custodes.adapters.registry import Registry
from custodes.policy import Catalog, RouteRequest, Settings, applies, resolve

NEEDED = "import cyclopts, anyio, trio, msgspec, ruamel.yaml"
SHOW = [sys.executable, "-m", "custodes.cli", "supervision", "show"]
CALLS = 2_000


def project(folder: Path, settings: str) -> Path:
    agents = ", ".join(Registry.discover(folder).descriptors)
    (folder / ".coding-os.yaml").write_text(f"agents: [{agents}]\n")
    (folder / ".coding-os").mkdir()
    (folder / ".coding-os" / "hub-settings.json").write_text(settings)
    return folder


def cold(command: list[str], cwd: Path) -> float:
    begun = perf_counter()
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return (perf_counter() - begun) * 1000


def show(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = project(Path(folder), '{"model_routing": {"enabled": true}}')
        floor = [sys.executable, "-c", NEEDED]
        cold(floor, here), cold(SHOW, here)
        pairs = [(cold(floor, here), cold(SHOW, here)) for _ in range(rounds)]
    floors, shows = zip(*pairs, strict=True)
    print(
        f"cold show            {statistics.median(shows):7.1f} ms   importing what it needs "
        f"{statistics.median(floors):.1f} ms   {statistics.median(s / f for f, s in pairs):.2f} x"
    )


def microseconds(action: Callable[[], object]) -> float:
    spans = []
    for _ in range(9):
        begun = perf_counter()
        for _ in range(CALLS):
            action()
        spans.append((perf_counter() - begun) / CALLS * 1e6)
    return statistics.median(spans)


async def microseconds_of(action: Callable[[], Awaitable[object]]) -> float:
    spans = []
    for _ in range(9):
        begun = perf_counter()
        for _ in range(CALLS):
            await action()
        spans.append((perf_counter() - begun) / CALLS * 1e6)
    return statistics.median(spans)


async def disabled() -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = project(Path(folder), '{"model_routing": {"enabled": false}}')
        await anyio.sleep(0.05)  # past the tick of the file's time, so that it is taken from the cache
        settings, file = Settings(here), here / ".coding-os" / "hub-settings.json"

        def gate() -> str:
            found = settings.read()
            return applies(found.policy, found.module_enabled, "CHAOTIC")

        async def host(work: Work) -> str:
            return work.prompt

        async with (
            Supervision(here) as supervision,
            supervision.conversation("bench", dispatch=host) as parent,
        ):
            work = Work(role="reviewer", prompt="x")
            print(
                f"disabled: the gate   {microseconds(gate):7.2f} us   its one stat "
                f"{microseconds(file.stat):.2f} us"
            )
            whole = await microseconds_of(lambda: parent.dispatch(work))
            bare = await microseconds_of(lambda: host(work))
            print(f"disabled: a dispatch {whole:7.2f} us   the host's own call {bare:.2f} us")


def routed() -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = project(Path(folder), '{"model_routing": {"enabled": true}}')
        registry = Registry.discover(here)
        catalog = Catalog.of(registry, readiness=False)
        policy = Settings(here).read().policy
        request = RouteRequest(role="reviewer")
        print(f"a route              {microseconds(lambda: resolve(request, policy, catalog)):7.2f} us")
        print(f"discovery, unchanged {microseconds(lambda: Registry.discover(here)):7.2f} us")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=15)
    show(options.parse_args().rounds)
    anyio.run(disabled)
    routed()


if __name__ == "__main__":
    main()
