"""The overseer as the contender of ``bench/overseer.py``: scripted providers and profiles, days on end.

python -m bench.overseer_subject {asyncio|trio}
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from importlib.metadata import version
from pathlib import Path

import anyio
import psutil

from bench.suite.contender import Figures, Spent, serve
from custodes.adapters.port import ProfileSetting, ProfileSwitch
from custodes.overseer import Config, Overseer
from custodes.overseer.endpoint import Endpoint, endpoints
from custodes.overseer.journal import Journal
from custodes.overseer.probe import Answer
from custodes.overseer.reading import parse_config
from custodes.overseer.watch import resting
from custodes.store import Database
from custodes.supervision.record.clock import Now
from custodes.supervision.record.schema import DATABASE, MIGRATIONS

TICK_S = 300.0
TICKS_AN_HOUR = 12
MIDNIGHT = 1_784_505_600.0
GOOD = Answer(seconds=0.1, status=200)
REFUSED = Answer(seconds=0.0, trouble="refused")
SCRIPT = {
    1: {"opencode-go": Answer(seconds=0.1, status=429)},
    3: {"grok-cli": REFUSED},
    4: {"grok-cli": GOOD},
    6: {"nvidia": Answer(seconds=0.1, status=402)},
    8: {"nvidia": GOOD},
    **{hour: {"gemini": GOOD if hour % 2 else Answer(seconds=0.1, status=503)} for hour in range(10, 16)},
    16: {"opencode-go": GOOD},
}
"""By the hour of a day: who answers how from then on."""
PROFILES = {
    "worker-code": ["opencode-go/kimi", "grok-cli/grok", "gemini/flash"],
    "worker-fast": ["grok-cli/grok", "opencode-go/kimi", "gemini/flash"],
    "worker-research": ["gemini/flash", "opencode-go/kimi"],
    "worker-review": ["nvidia/deepseek", "opencode-go/kimi", "gemini/flash"],
}
PROVIDERS = ("opencode-go", "grok-cli", "gemini", "nvidia")


class Shelf:
    """Profiles, and what each is set to."""

    def __init__(self, config: Config) -> None:
        self.profiles = {
            name: config.setting(name, row.primary) for name, row in config.fallback_matrix.items()
        }
        self.switches = 0

    async def read(self, profile: str) -> ProfileSetting:
        return self.profiles[profile]

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        assert self.profiles[profile].holds(expected)
        self.profiles[profile] = wanted
        self.switches += 1

    async def recover(self, profile: str) -> bool:  # noqa: ARG002 - nothing is ever half done here
        return False


class World:
    """What the overseer asks: a clock, providers, and profiles."""

    def __init__(self, config: Config) -> None:
        self.seconds = 0.0
        self.answers: dict[str, Answer] = {}
        self.questions = self.completions = 0
        self.shelf = Shelf(config)

    def now(self) -> Now:
        return Now("boot", 1_000.0 + self.seconds, MIDNIGHT + self.seconds)

    def actuator(self, _: str) -> ProfileSwitch:
        return self.shelf

    def ask(self, endpoint: Endpoint) -> Answer:
        self.questions += 1
        self.completions += endpoint.probe == "completion"
        return self.answers.get(endpoint.providers[0], GOOD)


def supervisor_file() -> Config:
    providers = {
        name: {"health_url": f"http://127.0.0.1:9/{name}/models", "quota_reset": "daily"}
        for name in PROVIDERS
    }
    matrix = {name: {"primary": row[0], "fallbacks": row[1:]} for name, row in PROFILES.items()}
    return parse_config(
        {"supervisor": {"providers": providers, "fallback_matrix": matrix}}, "supervisor.yaml"
    )


async def ticks(count: int) -> Figures:
    config = supervisor_file()
    world = World(config)
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        database = await Database.open(project / DATABASE, MIGRATIONS)
        try:
            overseer = Overseer(config, database, world.actuator, Journal(project), world.now)
            await overseer.start()
            await tick(overseer, world, config, 0)
            before = psutil.Process().memory_info().rss
            spent = Spent()
            with spent.counting(count):
                for number in range(1, count + 1):
                    await tick(overseer, world, config, number)
            gc.collect()
            left = psutil.Process().memory_info().rss - before
        finally:
            await database.aclose()
    return {
        **spent.figures(),
        "questions": world.questions,
        "completions": world.completions,
        "switches": world.shelf.switches,
        "left_bytes": max(0, left),
    }


async def tick(overseer: Overseer, world: World, config: Config, number: int) -> None:
    """One round, as a cron makes it, and then five minutes go by."""
    if number % TICKS_AN_HOUR == 0:
        world.answers |= SCRIPT.get(number // TICKS_AN_HOUR % 24, {})
    for each in endpoints(config):
        if any(resting(overseer.watches[name], world.now(), config) <= 0 for name in each.providers):
            await overseer.hear(each, world.ask(each))
    await overseer.act()
    world.seconds += TICK_S


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=["asyncio", "trio"])
    backend = parser.parse_args().backend
    serve(version("custodes"), {"ticks": lambda count: anyio.run(ticks, count, backend=backend)})


if __name__ == "__main__":
    main()
