"""Hosts in processes of their own that write to one project, and their programs, which note what they see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from custodes.adapters.registry import Registry

HOST = """\
import json, sys
from pathlib import Path

import anyio
import msgspec

import custodes
from custodes import Work


async def main(project: Path, name: str, prompt: str, *scope: str) -> None:
    def observe(event) -> None:
        if type(event).__name__ == "ChildWaiting":
            (project / f"{name}.waits").touch()

    async with custodes.Supervision(project, observer=observe) as supervision:
        async with supervision.conversation(name) as parent:
            model = name.rstrip("0123456789")
            outcome = await parent.dispatch(
                Work(role="implementer", prompt=prompt, name=name, model=model, scope=scope)
            )
    print(msgspec.json.encode(outcome).decode())


anyio.run(main, Path(sys.argv[1]), *sys.argv[3:], backend=sys.argv[2])
"""

EVIDENCE = '{"summary": "well"}'

WRITER = f"""\
import os, pathlib, sys, time
name = sys.stdin.read().split()[0]
pathlib.Path(f"{{name}}.on").write_text(str(os.getpid()))
until = pathlib.Path(f"{{name}}.go")
while not until.exists():
    time.sleep(0.01)
print('{EVIDENCE}')
"""
"""Writes its pid to ``NAME.on``, and ends well once there is a file ``NAME.go``."""


def project_of(folder: Path, **programs: str) -> Path:
    """A project whose models are these programs (their source), besides ``writer``."""
    project = folder / "project"
    adapter = project / ".coding-os" / "adapters" / "command"
    adapter.mkdir(parents=True)
    models = []
    for name, text in {"writer": WRITER, **programs}.items():
        (project / f"{name}.py").write_text(text)
        models.append({"id": name, "bucket": name, "argv": [sys.executable, f"{name}.py"]})
    (adapter / "adapter.yaml").write_text(json.dumps({"id": "command", "models": models}))
    (project / ".coding-os.yaml").write_text("agents: [command]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    Registry.discover(project).trust("command")
    return project


class Host:
    """A host that dispatches one piece of mutable work, to the model that its name begins with."""

    def __init__(self, project: Path, name: str, *scope: str, backend: str, prompt: str = "") -> None:
        self.project = project
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, str(project), backend, name, prompt or name, *scope],
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def runs(self) -> bool:
        """Its program is at work, or was."""
        return bool(self._read("on"))

    @property
    def pid(self) -> int:
        """Of its program."""
        return int(self._read("on"))

    @property
    def waits(self) -> bool:
        return (self.project / f"{self.name}.waits").exists()

    def go(self) -> None:
        """Let its program end."""
        (self.project / f"{self.name}.go").touch()

    def outcome(self) -> Any:
        """Wait for its end."""
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def _read(self, kind: str) -> str:
        file = self.project / f"{self.name}.{kind}"
        return file.read_text() if file.exists() else ""


@contextmanager
def hosts(project: Path, backend: str) -> Iterator[Callable[..., Host]]:
    """Starts hosts, and ends what is left of them."""
    started: list[Host] = []

    def start(name: str, *scope: str, prompt: str = "") -> Host:
        started.append(Host(project, name, *scope, backend=backend, prompt=prompt))
        return started[-1]

    try:
        yield start
    finally:
        for host in started:
            if host.process.poll() is None:
                host.process.kill()
            host.process.communicate()


def eventually(what: str, holds: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
