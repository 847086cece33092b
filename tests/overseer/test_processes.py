"""Overseers as processes of their own: two at once, and one killed in the middle of a switch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from custodes.overseer import report
from custodes.overseer.incident import Incident
from support.health_provider import health_provider

COS = [sys.executable, "-m", "custodes.cli", "overseer"]
SWITCH = """\
import os, signal, sys
from pathlib import Path

what, folder, *model = sys.argv[1:]
file = Path(folder) / "model"
if what == "read":
    print(file.read_text())
    sys.exit(0)
gate = Path(folder) / "gate"
if {where!r} == "before" and gate.exists():
    open(gate, "w").close()
    signal.pause()
file.write_text(model[0])
if {where!r} == "after" and gate.exists():
    open(gate, "w").close()
    signal.pause()
"""


class Setting:
    """A project whose one profile is a file that two programs read and set."""

    def __init__(self, folder: Path, where: str, first: str, second: str) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        (folder / "model").write_text("a/one")
        (folder / "switch.py").write_text(SWITCH.format(where=where))
        program = [sys.executable, str(folder / "switch.py")]
        (folder / "supervisor.yaml").write_text(
            json.dumps(
                {
                    "supervisor": {
                        "check_interval": 1,
                        "command": {
                            "read": [*program, "read", str(folder)],
                            "switch": [*program, "switch", str(folder), "{model}"],
                        },
                        "providers": {"a": {"health_url": first}, "b": {"health_url": second}},
                        "fallback_matrix": {
                            "w": {"primary": "a/one", "fallbacks": ["b/two"], "actuator": "command"}
                        },
                    }
                }
            )
        )

    @property
    def model(self) -> str:
        return (self.folder / "model").read_text()

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv = [*COS, *words, "--config", str(self.folder / "supervisor.yaml"), "-d", str(self.project)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> str:
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out

    def incidents(self) -> tuple[Incident, ...]:
        return anyio.run(report.incidents, self.project, 100, backend="trio")


@pytest.fixture
def setting(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Setting]:
    with health_provider() as first, health_provider() as second:
        first.status = 402
        yield Setting(tmp_path, request.param, first.url, second.url)


@pytest.mark.parametrize("setting", ["never"], indirect=True)
def test_of_two_started_at_once_one_runs_and_the_incident_is_single(setting: Setting) -> None:
    both = [setting.start("run") for _ in range(2)]
    try:
        said = {process: process.stderr.readline() for process in both if process.stderr is not None}
        (loser,) = (process for process, line in said.items() if "an overseer already runs here" in line)
        (winner,) = (process for process in both if process is not loser)
        assert loser.wait() == 1
        assert said[winner].startswith("moved: w: a/one → b/two")
    finally:
        for process in both:
            process.terminate()
    assert winner.wait() == 0
    for process in both:
        process.communicate()
    assert [(each.cause, each.status) for each in setting.incidents()] == [("outage:a:w", "active")]


@pytest.mark.parametrize("setting", ["before", "after"], indirect=True)
def test_one_killed_in_the_middle_of_a_switch_is_completed_or_undone_by_the_next(setting: Setting) -> None:
    gate = setting.folder / "gate"
    os.mkfifo(gate)
    killed = setting.start("run")
    gate.read_bytes()  # ends once the program that switches is at its gate
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    gate.unlink()
    setting.run("tick")
    assert setting.model == "b/two"
    assert [(each.cause, each.new_model) for each in setting.incidents()] == [("outage:a:w", "b/two")]
    lines = (setting.project / ".coding-os" / "supervisor.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["moved"]
