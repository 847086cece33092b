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
from support.health_provider import HealthProvider, health_provider
from support.writers import eventually

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

    def __init__(self, folder: Path, where: str, first: HealthProvider, second: HealthProvider) -> None:
        self.folder = folder
        self.providers = first, second
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
                        "recovery": {"checks": 1, "spacing": 0},
                        "command": {
                            "read": [*program, "read", str(folder)],
                            "switch": [*program, "switch", str(folder), "{model}"],
                        },
                        "providers": {"a": {"health_url": first.url}, "b": {"health_url": second.url}},
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

    def killed_at_the_gate(self, *words: str) -> None:
        """Start it, and end it with -9 once the program that switches is at its gate."""
        gate = self.folder / "gate"
        os.mkfifo(gate)
        killed = self.start(*words)
        gate.read_bytes()
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        gate.unlink()

    @property
    def log(self) -> list[dict[str, object]]:
        text = (self.project / ".coding-os" / "supervisor.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def incidents(self) -> tuple[Incident, ...]:
        return anyio.run(report.incidents, self.project, 100, backend="trio")


@pytest.fixture
def setting(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Setting]:
    with health_provider() as first, health_provider() as second:
        first.status = 402
        yield Setting(tmp_path, request.param, first, second)


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
    setting.killed_at_the_gate("run")
    setting.run("tick")
    assert setting.model == "b/two"
    assert [(each.cause, each.new_model) for each in setting.incidents()] == [("outage:a:w", "b/two")]
    assert [line["event"] for line in setting.log] == ["moved"]


@pytest.mark.parametrize("setting", ["before", "after"], indirect=True)
def test_a_switch_by_hand_killed_in_the_middle_is_completed_or_undone_by_the_next(setting: Setting) -> None:
    setting.providers[0].status = 200
    setting.killed_at_the_gate("switch", "w", "b/two")
    completed = setting.model == "b/two"
    setting.run("tick")
    assert setting.model == ("b/two" if completed else "a/one")
    assert [(each.cause, each.by) for each in setting.incidents()] == [("hand:a:w", "cli")] * completed
    setting.run("switch", "w", "b/two")
    assert setting.model == "b/two"
    assert [each.status for each in setting.incidents()] == ["active"]


@pytest.mark.parametrize("setting", ["never"], indirect=True)
def test_the_overseer_that_runs_switches_what_another_process_asks_for_and_leaves_it_there(
    setting: Setting,
) -> None:
    first, second = setting.providers
    first.status = 200
    running = setting.start("run")
    try:
        assert running.stdout is not None
        assert "watching" in running.stdout.readline()
        assert json.loads(setting.run("switch", "w", "b/two", "--format", "json"))["moved"] is True
        asked, second.status = len(second.asked), 402
        eventually("the second is asked", lambda: len(second.asked) > asked + 2)
        assert setting.model == "b/two"
        assert (setting.log[0]["event"], setting.log[0]["by"]) == ("moved", "cli")
        setting.run("switch", "w", "primary")
        assert setting.model == "a/one"
        first.status, second.status = 402, 200
        eventually("it is moved off the first", lambda: setting.model == "b/two")
    finally:
        running.terminate()
        running.communicate()


@pytest.mark.parametrize("setting", ["before", "after"], indirect=True)
def test_who_asked_an_overseer_that_is_killed_in_the_middle_of_it_has_it_done_all_the_same(
    setting: Setting,
) -> None:
    setting.providers[0].status = 200
    gate = setting.folder / "gate"
    running = setting.start("run")
    assert running.stdout is not None
    assert "watching" in running.stdout.readline()
    os.mkfifo(gate)
    asking = setting.start("switch", "w", "b/two")
    gate.read_bytes()
    running.send_signal(signal.SIGKILL)
    running.communicate()
    gate.unlink()
    out, err = asking.communicate(timeout=120)
    assert (asking.returncode, setting.model) == (0, "b/two"), err
    assert "held there" in out
    assert [(each.cause, each.by, each.status) for each in setting.incidents()] == [
        ("hand:a:w", "cli", "active")
    ]


@pytest.mark.parametrize("setting", ["never"], indirect=True)
def test_of_many_persons_at_once_each_is_answered_and_none_is_lost(setting: Setting) -> None:
    setting.providers[0].status = 200
    targets = ["b/two", "primary", "b/two", "auto"]
    asking = [setting.start("switch", "w", target, "--format", "json") for target in targets]
    for process, target in zip(asking, targets, strict=True):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert json.loads(out)["new_model"] == {"primary": "a/one", "auto": "a/one"}.get(target, target)
    setting.run("switch", "w", "auto")
    assert setting.model == "a/one"
