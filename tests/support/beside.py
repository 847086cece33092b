"""What a Hub is tested beside: projects for it to show, hosts that work there, and who else changes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.patch import PolicyPatch
from custodes.policy.policy import Policy
from custodes.policy.settings import Settings
from support.cos import Cos

PROGRAM = """\
import json, os, sys, time
from pathlib import Path

what = sys.argv[1]
sys.stdin.read()
if what == "sick" and Path("sick").exists():
    print("rate limit reached, retry after 4 seconds", file=sys.stderr)
    sys.exit(1)
while what == "slow" and not Path("go").exists():
    time.sleep(0.05)
print(json.dumps({"summary": "<script>document.title='owned'</script>"}))
"""


@pytest.fixture
def models(project: Path, cos: Cos) -> Path:
    """One adapter whose models are small programs, each in a pool of its own; supervision is on."""
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    lines = "".join(
        f"  - {{id: {name}, bucket: {name}, argv: [{sys.executable}, {folder / 'program.py'}, {name}]"
        f"{', default: true' if name == 'well' else ''}}}\n"
        for name in ("well", "sick", "slow")
    )
    (folder / "adapter.yaml").write_text(f"models:\n{lines}")
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    assert cos("adapters", "trust", "command").code == 0
    assert cos("supervision", "enable").code == 0
    return project


@pytest.fixture
def both(project: Path, cos: Cos) -> Path:
    """Three configured adapters, of which one is not installed."""
    binaries = project.parent / "bin"
    binaries.mkdir()
    for name in ("claude", "codex"):
        (binaries / name).write_text("#!/bin/sh\necho 99.0.0\n")
        (binaries / name).chmod(0o755)
    (project / ".coding-os.yaml").write_text("agents: [claude, codex, hermes]\n")
    assert cos("supervision", "enable").code == 0
    return project


def policy(project: Path) -> Policy:
    return Settings(project).read().policy


class Host(subprocess.Popen[str]):
    """A process beside the Hub. Where the test that waits for it fails, it is ended, since what it waits for
    will not come."""

    def __init__(self, *command: str, **options: Any) -> None:
        super().__init__([sys.executable, *command], stdin=subprocess.DEVNULL, text=True, **options)

    def __exit__(self, *failure: Any) -> None:
        if failure[0] is not None:
            self.terminate()
        super().__exit__(*failure)


def beside(project: Path, *words: str) -> Host:
    """`cos` in a process of its own."""
    return Host("-m", "custodes.cli", *words, "-d", str(project), stdout=subprocess.DEVNULL)


def work(project: Path, *words: str) -> Host:
    """`cos dispatch` as a host."""
    return beside(project, "dispatch", "--role", "analyst", *words)


def typed(project: Path, *words: str) -> None:
    """`cos`, as a person types it in a terminal, until it is done."""
    assert beside(project, *words).wait(60) == 0


def elsewhere(project: Path, change: PolicyPatch) -> None:
    """A change by another program."""
    Settings(project).patch(change, Catalog.of(Registry.discover(project), readiness=False))
