"""The settings file under several writers, and under writers that die: real processes, real locks."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from custodes.policy import PolicyPatch, Settings
from custodes.policy.roles import ROLES
from support.catalogs import CLAUDE, CODEX, catalog

TESTS = Path(__file__).parent.parent

WRITER = """
import sys
from pathlib import Path
from support.catalogs import CODEX, catalog
from custodes.policy import PolicyPatch, Settings, TargetPatch

project, role, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
settings, only_codex = Settings(project), catalog(CODEX)
for number in range(rounds):
    if number:
        assert settings.read().policy.roles[role].model == f"{role}-{number - 1}", "an update was lost"
    settings.patch(PolicyPatch(roles={role: TargetPatch(model=f"{role}-{number}")}), only_codex)
"""

PLAIN_WRITER = """
import fcntl, json, os, sys
from pathlib import Path

project, rounds = Path(sys.argv[1]), int(sys.argv[2])
file = project / ".coding-os" / "hub-settings.json"
for number in range(rounds):
    with open(file.with_name("hub-settings.lock"), "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = json.loads(file.read_text())
        document["hub"]["count"] += 1
        new = file.with_name("plain.tmp")
        new.write_text(json.dumps(document, indent=4))
        os.replace(new, file)
"""


def start(script: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error.decode()


def prepare(project: Path) -> Path:
    file = project / ".coding-os" / "hub-settings.json"
    file.parent.mkdir()
    file.write_text(
        '{\n    "hub": {"count": 0, "keys": ["z", "a"]},\n    "model_routing": {"future": [1]}\n}\n'
    )
    return file


@pytest.mark.parametrize(
    ("writers", "rounds"), [(4, 15), pytest.param(8, 200, marks=pytest.mark.full)], ids=["few", "many"]
)
def test_writers_of_both_kinds_lose_no_update(tmp_path: Path, writers: int, rounds: int) -> None:
    file = prepare(tmp_path)
    running = [start(WRITER, tmp_path, role, str(rounds)) for role in ROLES[:writers]]
    running.append(start(PLAIN_WRITER, tmp_path, str(rounds)))
    for process in running:
        finish(process)
    document = json.loads(file.read_text())
    assert list(document) == ["hub", "model_routing"]
    assert document["hub"] == {"count": rounds, "keys": ["z", "a"]}
    assert document["model_routing"].pop("future") == [1]
    assert document["model_routing"]["roles"] == {
        role: {"model": f"{role}-{rounds - 1}"} for role in ROLES[:writers]
    }


DIES_AT_EACH_CALL = """
import json, os, signal, sys
from pathlib import Path
from support.catalogs import CLAUDE, catalog
from custodes.policy import PolicyPatch, Settings
from filelock import FileLock  # imported before the fork, so that only the write itself is counted

project = Path(sys.argv[1])
settings, view = Settings(project), catalog(CLAUDE)
file = settings.path
old = file.read_bytes()
SYSTEM = ("posix", "fcntl", "_io")
seen = {"old": 0, "new": 0}

def child(limit):
    count = 0
    def die(frame, event, function):
        nonlocal count
        if event not in ("c_call", "c_return"):
            return
        home = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
        if home in SYSTEM:
            count += 1
            if count > limit:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.setprofile(die)
    settings.patch(PolicyPatch(enabled=True), view)
    sys.setprofile(None)
    os._exit(0)

limit = 0
while True:
    pid = os.fork()
    if pid == 0:
        child(limit)
    _, status = os.waitpid(pid, 0)
    found = file.read_bytes()
    if found == old:
        seen["old"] += 1
    else:
        assert json.loads(found)["model_routing"]["enabled"] is True, found
        seen["new"] += 1
    Settings(project).patch(PolicyPatch(enabled=True), view)  # no lock was left behind
    left = {p.name for p in file.parent.iterdir()} - {"hub-settings.json", "hub-settings.lock"}
    file.write_bytes(old)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    limit += 1
print(json.dumps(seen | {"calls": limit, "left": sorted(left)}))
"""


def test_a_writer_killed_before_and_after_each_system_call_leaves_a_whole_file(tmp_path: Path) -> None:
    prepare(tmp_path)
    found = subprocess.run(
        [sys.executable, "-c", DIES_AT_EACH_CALL, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr.decode()
    seen = json.loads(found.stdout)
    assert seen["calls"] > 20
    assert seen["old"] > 5
    assert seen["new"] > 2
    assert seen["left"] == []


ENDLESS = """
import itertools, sys
from pathlib import Path
from support.catalogs import CLAUDE, catalog
from custodes.policy import PolicyPatch, Settings

settings, view = Settings(Path(sys.argv[1])), catalog(CLAUDE)
print("ready", flush=True)
for number in itertools.count():
    settings.patch(PolicyPatch(max_parallel=number % 16 + 1), view)
"""


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.full)])
def test_a_writer_killed_at_any_instant_leaves_a_whole_file_and_no_lock(tmp_path: Path, kills: int) -> None:
    prepare(tmp_path)
    settings, view = Settings(tmp_path), catalog(CLAUDE, CODEX)
    instants = random.Random(7)  # noqa: S311  # replayable, no secret
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, str(tmp_path)],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(instants.uniform(0, 0.03))  # the instant itself is what is tried, nothing waits for it
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert json.loads(settings.path.read_text())["hub"] == {"count": 0, "keys": ["z", "a"]}
        settings.patch(PolicyPatch(max_parallel=3), view)
    assert settings.read().policy.max_parallel == 3


NO_ROOM = """
import resource, sys
from pathlib import Path
from support.catalogs import CLAUDE, catalog
from custodes.policy import PolicyPatch, Settings, SettingsError

settings, view = Settings(Path(sys.argv[1])), catalog(CLAUDE)
old = settings.path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(old), len(old)))
try:
    settings.patch(PolicyPatch(enabled=True), view)
except SettingsError as error:
    assert "cannot be written" in str(error), error
else:
    raise AssertionError("it was written")
assert settings.path.read_bytes() == old
assert {p.name for p in settings.path.parent.iterdir()} == {"hub-settings.json", "hub-settings.lock"}
"""


def test_a_write_that_finds_no_room_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    prepare(tmp_path)
    finish(start(NO_ROOM, tmp_path))
