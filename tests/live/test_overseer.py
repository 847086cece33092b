"""The overseer over an installed Hermes with the seed's four profiles: private home, loopback providers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from custodes.adapters.port import ProfileSetting, SwitchError
from custodes.adapters.registry import Registry
from custodes.overseer import daemon
from custodes.overseer.by_hand import SwitchOrder
from custodes.overseer.config import Config
from custodes.overseer.hand_switch import switch_by_hand
from custodes.overseer.reading import parse_config
from custodes.supervision.record.clock import Now
from custodes.supervision.record.clock import now as real_now
from live.harness import INSTALLED
from support.health_provider import HealthProvider, health_provider
from support.overseer import seed_config

pytestmark = [pytest.mark.live, pytest.mark.anyio]
NAMES = ("opencode-go", "grok-cli", "gemini", "nvidia")


@dataclass
class Stage:
    home: Path
    project: Path
    config: Config
    providers: dict[str, HealthProvider]
    later: float = 0.0

    def hermes(self, *words: str) -> str:
        """What it prints; it must end with 0."""
        return subprocess.run(["hermes", *words], capture_output=True, text=True, check=True).stdout.strip()

    def file(self, profile: str) -> Path:
        return self.home / "profiles" / profile / "config.yaml"

    def model(self, profile: str) -> tuple[str, str]:
        """As Hermes itself reads it."""
        read = json.loads(self.hermes("-p", profile, "config", "get", "model", "--json"))
        return str(read["default"]), str(read["base_url"])

    def at(self, provider: str) -> str:
        return self.providers[provider].url.removesuffix("/models")

    def now(self) -> Now:
        here = real_now()
        return Now(here.boot, here.uptime + self.later, here.wall + self.later)

    async def ticks(self, count: int) -> None:
        for _ in range(count):
            await daemon.tick(self.project, self.config, now=self.now)
            self.later += 300


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hermes home with the four profiles, made by Hermes itself."""
    home = tmp_path_factory.mktemp("hermes")
    path = f"{INSTALLED}{os.pathsep}{os.environ['PATH']}"
    if shutil.which("hermes", path=path) is None:
        pytest.skip("hermes is not installed here; `scripts/runtimes install hermes`")
    environment = {**os.environ, "PATH": path, "HERMES_HOME": str(home), "HOME": str(home.parent)}
    for profile in seed_config().fallback_matrix:
        subprocess.run(
            ["hermes", "profile", "create", profile], env=environment, check=True, capture_output=True
        )
    return home


@pytest.fixture
def stage(created: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    home = tmp_path / "hermes"
    shutil.copytree(created, home)
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{INSTALLED}{os.pathsep}{os.environ['PATH']}")
    running = [health_provider() for _ in NAMES]
    providers = dict(zip(NAMES, (each.__enter__() for each in running), strict=True))
    rows = seed_config().fallback_matrix
    raw = {
        name: {
            "health_url": provider.url,
            "switch": {
                "model": "{model}",
                "provider": "custom",
                "base_url": provider.url.removesuffix("/models"),
            },
        }
        for name, provider in providers.items()
    }
    matrix = {
        profile: {"primary": str(row.primary), "fallbacks": [str(each) for each in row.fallbacks]}
        for profile, row in rows.items()
    }
    config = parse_config({"supervisor": {"providers": raw, "fallback_matrix": matrix}}, "supervisor.yaml")
    for profile, row in rows.items():
        (home / "profiles" / profile / "config.yaml").write_text(
            f"# {profile}, by hand\n"
            f"model:\n  default: {row.primary.model} # for now\n  provider: custom\n  api_key: sk-dummy\n"
            f"  base_url: {providers[row.primary.provider].url.removesuffix('/models')}\n"
            "agent:\n  max_turns: 7 # mine\n"
        )
    try:
        yield Stage(home, tmp_path / "project", config, providers)
    finally:
        for each in running:
            each.__exit__(None, None, None)


async def test_four_profiles_leave_a_sick_provider_and_return(stage: Stage) -> None:
    before = {profile: stage.file(profile).read_text() for profile in stage.config.fallback_matrix}
    await stage.ticks(1)
    stage.providers["opencode-go"].status = 429
    stage.providers["grok-cli"].refuse()
    await stage.ticks(3)
    assert {profile: stage.model(profile) for profile in before} == {
        "worker-code": ("gemini-3-flash-preview", stage.at("gemini")),
        "worker-fast": ("gemini-3-flash-preview", stage.at("gemini")),
        "worker-research": ("gemini-3-flash-preview", stage.at("gemini")),
        "worker-review": ("deepseek-ai/deepseek-v4-pro", stage.at("nvidia")),
    }
    text = stage.file("worker-code").read_text()
    assert "# worker-code, by hand" in text
    assert "max_turns: 7 # mine" in text
    stage.providers["opencode-go"].status = 200
    stage.providers["grok-cli"].listen()
    await stage.ticks(8)
    after = {profile: stage.file(profile).read_text().replace('"', "") for profile in before}
    assert after == before
    assert {method for each in stage.providers.values() for method in each.methods} == {"GET"}


async def test_a_profile_switched_by_hand_stays_and_is_given_back_as_it_was(stage: Stage) -> None:
    before = stage.file("worker-code").read_text()
    await stage.ticks(1)
    order = SwitchOrder(profile="worker-code", target="gemini/gemini-3-flash-preview", by="cli")
    await switch_by_hand(stage.project, stage.config, order, now=stage.now)
    assert stage.model("worker-code") == ("gemini-3-flash-preview", stage.at("gemini"))
    stage.providers["gemini"].status = 402
    await stage.ticks(2)
    assert stage.model("worker-code") == ("gemini-3-flash-preview", stage.at("gemini"))
    back = SwitchOrder(profile="worker-code", target="primary", by="cli")
    await switch_by_hand(stage.project, stage.config, back, now=stage.now)
    assert stage.file("worker-code").read_text().replace('"', "") == before


async def test_one_that_a_system_manages_ends_with_0_and_is_not_believed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_MANAGED", "1")
    stage.hermes("-p", "worker-code", "config", "set", "model.default", "x")
    before = stage.file("worker-code").read_text()
    switch = Registry.discover(stage.project).profile_switch("hermes")
    here = await switch.read("worker-code")
    with pytest.raises(SwitchError, match="ended well, but on a copy"):
        await switch.switch("worker-code", ProfileSetting(model="grok-4.5"), here)
    assert stage.file("worker-code").read_text() == before


async def test_a_malformed_profile_is_left_alone_though_hermes_would_replace_it(stage: Stage) -> None:
    stage.file("worker-fast").write_text("model: [open\n  x: {")
    stage.providers["grok-cli"].status = 402
    stage.providers["opencode-go"].status = 402
    await stage.ticks(1)
    assert stage.file("worker-fast").read_text() == "model: [open\n  x: {"
    assert stage.model("worker-code")[0] == "gemini-3-flash-preview", "the others are served"


async def test_its_cron_runs_a_tick_without_a_model_and_in_silence(stage: Stage) -> None:
    (stage.home / "supervisor.yaml").write_text(
        json.dumps(
            {
                "supervisor": {
                    "providers": {"opencode-go": {"health_url": stage.providers["opencode-go"].url}},
                    "fallback_matrix": {"worker-code": {"primary": "opencode-go/kimi-k2.7-code"}},
                }
            }
        )
    )
    stage.file("worker-code").write_text("model: {default: opencode-go/kimi-k2.7-code}\n")
    (stage.home / "scripts").mkdir(exist_ok=True)
    (stage.home / "scripts" / "overseer.sh").write_text(
        f'exec {sys.executable} -m custodes.cli overseer tick --quiet --project-dir "$HERMES_HOME"\n'
    )
    told = stage.hermes(
        "cron",
        "create",
        "*/5 * * * *",
        "--name",
        "o",
        "--script",
        "overseer.sh",
        "--no-agent",
        "--deliver",
        "local",
    )
    job = told.split()[2]
    assert "succeeded" in stage.hermes("cron", "run", job)
    assert stage.providers["opencode-go"].methods == ["GET"]
    (output,) = (stage.home / "cron" / "output" / job).iterdir()
    assert "silent" in output.read_text()
