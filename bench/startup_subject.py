"""The command line as a contender of ``bench/startup.py``, and the interpreter as the floors under it.

python -m bench.startup_subject {cos|imports|python}
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
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
    "mcp",
)
"""Every command that ends by itself, a server's start included: its input is at its end."""
STARTS = 5
"""Of the bare interpreter for one figure: a start of it is over before much of a timer's grain."""


def started(command: list[str], project: Path, starts: int) -> Figures:
    """For one start, a process of its own from its start to its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(project.parent / "site"), str(ROOT)))}
    spent = Spent()
    with spent.counting(starts):
        for _ in range(starts):
            ran = subprocess.run(
                command,
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            if ran.returncode:
                raise RuntimeError(f"exit code {ran.returncode}: {ran.stderr.decode()[-200:]}")
    return spent.figures()


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
        cos = [str(Path(sys.executable).with_name("cos"))]

        def start(command: list[str], where: Path, starts: int = 1) -> Case:
            return lambda _: started(command, where, starts)

        cases: dict[str, Case]
        if subject == "python":
            cases = {"nothing": start([sys.executable, "-c", "pass"], project, STARTS)}
        elif subject == "imports":
            cases = {"cold show": start([sys.executable, "-c", NEEDED], every)}
        else:
            cases = {each: start([*cos, *each.split()], project) for each in COMMANDS}
            cases["cold show"] = start([*cos, "supervision", "show"], every)
        serve(version("custodes") if subject == "cos" else sys.version.split()[0], cases)


if __name__ == "__main__":
    main()
