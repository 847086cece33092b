"""A host that is killed with -9 while a pool cools and children run: what the next one finds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest

import custodes
from custodes.adapters.registry import Registry
from custodes.supervision.work import Outcome, Work

HOST = """\
import sys
from pathlib import Path

import anyio

import custodes
from custodes import Work


async def main(project: Path) -> None:
    async with custodes.Supervision(project) as supervision, supervision.conversation("killed") as parent:
        limited = await parent.dispatch(Work(role="reviewer", prompt="x", model="limited"))
        assert limited.failure.category == "capacity", limited
        async with parent.fan_out() as fan:
            for number in range(2):
                fan.start(Work(role="reviewer", prompt=str(number), model="sleeper"))


anyio.run(main, Path(sys.argv[1]), backend=sys.argv[2])
"""

SLEEPER = """\
import os, pathlib, subprocess, sys
prompt = sys.stdin.read()
tool = subprocess.Popen(["sleep", "600"], start_new_session=True)
pathlib.Path(f"pids-{prompt}").write_text(f"{os.getpid()} {tool.pid}")
tool.wait()
"""

LIMITED = 'print(\'{"failure": {"category": "capacity", "retry_after_s": 600}}\')'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    programs = {"sleeper": SLEEPER, "limited": LIMITED}
    models = [{"id": name, "bucket": name, "argv": [sys.executable, f"{name}.py"]} for name in programs]
    for name, text in programs.items():
        (project / f"{name}.py").write_text(text)
    (folder / "adapter.yaml").write_text(json.dumps({"id": "command", "models": models}))
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    Registry.discover(project).trust("command")
    return project


async def ask_again(project: Path) -> Outcome:
    async with custodes.Supervision(project) as supervision, supervision.conversation("next") as parent:
        return await parent.dispatch(Work(role="reviewer", prompt="x", model="limited"))


def eventually(what: str, holds: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_processes_are_gone_the_cooldown_stands_and_the_rows_are_unknown(project: Path, backend: str) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, str(project), backend])
    try:
        files = [project / "pids-0", project / "pids-1"]
        eventually("two children run", lambda: all(file.exists() and file.read_text() for file in files))
        pids = [int(pid) for file in files for pid in file.read_text().split()]
        assert all(alive(pid) for pid in pids)
    finally:
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    eventually("every process of the children is gone", lambda: not any(alive(pid) for pid in pids))

    refused = anyio.run(ask_again, project, backend=backend)
    assert refused.status == "refused"
    assert refused.refusal is not None
    assert refused.refusal.retry_after_s is not None
    assert 500 < refused.refusal.retry_after_s <= 600
    with sqlite3.connect(project / ".coding-os" / "custodes.db") as database:
        rows = database.execute(
            "SELECT status FROM attempts WHERE conversation = 'killed' AND model = 'sleeper'"
        ).fetchall()
    database.close()
    assert rows == [("unknown",)] * 2
