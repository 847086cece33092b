"""Fixtures: a project and a user configuration of its own for each test, the program called in process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from custodes.cli.app import call
from support.cos import Answer, Cos, Tiered


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cos(project: Path, capsys: pytest.CaptureFixture[str]) -> Cos:
    def run(*words: str) -> Answer:
        capsys.readouterr()
        code = call(words)
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def tiered(project: Path) -> Tiered:
    """A project with a fixture adapter: nothing of it is ever run here."""
    folder = project / ".coding-os" / "adapters" / "fixture"
    folder.mkdir(parents=True)
    (folder / "dispatch.py").write_text("")
    (folder / "adapter.yaml").write_text(
        "version: 1\n"
        "label: A fixture\n"
        "runtime_entrypoints:\n"
        "  dispatch: dispatch.py\n"
        "  capabilities: [dispatch, model_selection, effort_selection]\n"
        "models:\n"
        "  - {id: large-1, bucket: large, default: true}\n"
        "  - {id: small-1, bucket: small}\n"
        "efforts: [low, medium, high]\n"
    )
    (project / ".coding-os.yaml").write_text("agents: [fixture]\n")
    return Tiered(project, "fixture")


PROGRAM = """\
import json, os, subprocess, sys, time
import sys
from pathlib import Path

what = sys.argv[1]
sys.stdin.read()
if what == "limit":
    print("rate limit reached, retry after 60 seconds", file=sys.stderr)
    sys.exit(1)
if what == "slow":
    # A tool in a session of its own, as real agents start them, which ignores a polite end.
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    tool = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    with open("pids", "w") as pids:  # a pipe that the test reads
        print(os.getpid(), tool.pid, file=pids)
    time.sleep(600)
if what == "write":
    Path("w.txt").write_text("by the writer\\n")
seen = ", ".join(sorted(path.name for path in Path().glob("*.txt")))
print(json.dumps({"summary": f"{os.environ['CUSTODES_ROLE']} saw {seen}"}))
"""


@pytest.fixture
def programs(project: Path, cos: Cos) -> Path:
    """A project whose runtime is four small programs, each in a pool of its own, with supervision enabled."""
    folder = project / ".coding-os" / "adapters" / "command"
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    models = "".join(
        f"  - {{id: {name}, bucket: {name}, argv: [{sys.executable}, {folder / 'program.py'}, {name}]}}\n"
        for name in ("look", "limit", "slow", "write")
    )
    (folder / "adapter.yaml").write_text(f"models:\n{models}")
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / "a.txt").write_text("a\n")
    assert cos("adapters", "trust", "command").code == 0
    assert cos("supervision", "enable").code == 0
    return project
