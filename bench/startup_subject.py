"""The command line as a contender of ``bench/startup.py``, and the interpreter as the floors under it.

python -m bench.startup_subject {cos|imports|python}
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench.dispatch_subject import install
from bench.suite.contender import Case, Figures, Spent, serve
from custodes.adapters.registry import Registry

ROOT = Path(__file__).parents[1]
NEEDED = "import cyclopts, anyio, trio, msgspec, ruamel.yaml"
COMMANDS = (
    "--version",
    "--help",
    "init",
    "completion bash",
    "doctor",
    "roles",
    "supervision show",
    "supervision show --health",
    "supervision explain --role reviewer",
    "supervision turn-defaults",
    "supervision set --max-parallel 16",
    "adapters list",
    "health show",
    "runs list",
    "runs asks",
    "scopes list",
    "overseer describe",
    "dispatch --role reviewer nothing",
    "run plan.yaml",
    "mcp",
)
"""Every command that ends by itself, a server's start included: its input is at its end."""
FIRST = {"demo": "to its first line", "hub --port 0": "to its first answer"}
"""Those that go on, and how far they are measured."""
STARTS = 10
"""Of the bare interpreter for one figure: a start of it is over before much of a timer's grain."""


Start = Callable[[], object]
"""Starts a program once and waits for it.

:raises RuntimeError: it failed.
"""


class Starts:
    """Programs in a project, each a process of its own."""

    def __init__(self, project: Path) -> None:
        self._project = project
        path = os.pathsep.join((str(project.parent / "site"), str(ROOT)))
        self._environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(project.parent)}

    def whole(self, *command: str) -> None:
        """From its start to its end."""
        ran = subprocess.run(
            command,
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(f"exit code {ran.returncode}: {ran.stderr.decode()[-200:]}")

    def first(self, *command: str) -> None:
        """To its first line; where that ends with an address, to the answer it gives there. It is killed
        then: what it takes to end would count."""
        with subprocess.Popen(
            command,
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                words = process.stdout.readline().split()
                if not words:
                    raise RuntimeError(f"it ended without a word: exit code {process.wait()}")
                if words[-1].startswith("http://"):
                    urllib.request.urlopen(words[-1], timeout=60).close()  # noqa: S310 - its own address
            finally:
                process.kill()


def measured(start: Start, starts: int = 1) -> Case:
    """For one start of it. The first is not measured: it compiles what no earlier one has."""
    unmeasured = [start]

    def case(_: int) -> Figures:
        while unmeasured:
            unmeasured.pop()()
        spent = Spent()
        with spent.counting(starts):
            for _start in range(starts):
                start()
        return spent.figures()

    return case


def every_adapter(folder: Path) -> Path:
    """A project in which all the descriptors that come along are read."""
    project = folder / "every-adapter"
    (project / ".coding-os").mkdir(parents=True)
    agents = ", ".join(Registry.discover(project).descriptors)
    (project / ".coding-os.yaml").write_text(f"agents: [{agents}]\n")
    (project / ".coding-os" / "hub-settings.json").write_text('{"model_routing": {"enabled": true}}')
    return project


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["cos", "imports", "python"])
    subject = parser.parse_args().subject
    with tempfile.TemporaryDirectory() as folder:
        project, every = install(Path(folder)), every_adapter(Path(folder))
        (project / "plan.yaml").write_text("steps: [{id: review, role: reviewer, prompt: nothing}]\n")
        here, there = Starts(project), Starts(every)
        cos = str(Path(sys.executable).with_name("cos"))
        cases: dict[str, Case]
        if subject == "python":
            cases = {"nothing": measured(partial(here.whole, sys.executable, "-c", "pass"), STARTS)}
        elif subject == "imports":
            cases = {"cold show": measured(partial(there.whole, sys.executable, "-c", NEEDED))}
        else:
            cases = {each: measured(partial(here.whole, cos, *each.split())) for each in COMMANDS}
            cases |= {each: measured(partial(here.first, cos, *each.split())) for each in FIRST}
            cases["cold show"] = measured(partial(there.whole, cos, "supervision", "show"))
        serve(version("custodes") if subject == "cos" else sys.version.split()[0], cases)


if __name__ == "__main__":
    main()
