"""What the disabled path costs, and what importing the policy pulls in: seen in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DISABLED = """
import os, sys
from pathlib import Path
from custodes.policy import Settings, applies

settings = Settings(Path(sys.argv[1]))
settings.read()
events, stats, real = [], 0, os.stat

def counted(*args, **kwargs):
    global stats
    stats += 1
    return real(*args, **kwargs)

os.stat = counted
sys.addaudithook(lambda event, args: events.append(event))
for _ in range(50):
    found = settings.read()
    assert applies(found.policy, found.module_enabled, "CHAOTIC") == "off"
os.stat = real
seen = [event for event in events if event != "object.__setattr__"]
assert not seen, seen
assert stats == 50, stats
"""


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{}",
        '{"model_routing": {"enabled": false}}',
        '{"cognition": {"enabled": false}, "model_routing": {"enabled": true}}',
    ],
    ids=["no file", "no section", "disabled", "module off"],
)
def test_the_disabled_path_is_one_stat_and_opens_no_file(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        file = tmp_path / ".coding-os" / "hub-settings.json"
        file.parent.mkdir()
        file.write_text(content)
    found = subprocess.run(
        [sys.executable, "-c", DISABLED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_importing_the_policy_loads_neither_store_nor_telemetry_nor_an_event_loop() -> None:
    script = "import sys, custodes.policy\nprint(*sorted(set(sys.argv[1:]) & set(sys.modules)))"
    rooms = ["custodes.store", "custodes.telemetry", "custodes.actors", "custodes.supervision"]
    others = ["sqlite3", "aiosqlite", "opentelemetry", "anyio", "asyncio", "trio", "filelock", "ruamel.yaml"]
    command = [sys.executable, "-c", script, *rooms, *others]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
