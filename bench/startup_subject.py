"""The command line as a contender of ``bench/startup.py``, and the interpreter alone as the floor under it.

python -m bench.startup_subject {cos|python}
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench.contender import serve
from bench.dispatch_subject import install

COMMANDS = (
    "--version",
    "--help",
    "supervision show",
    "supervision explain --role reviewer",
    "adapters list",
    "roles",
    "health show",
    "runs list",
    "scopes list",
    "doctor",
)


def seconds(command: list[str], project: Path, times: int) -> dict[str, float]:
    """The quickest of so many starts, each a process of its own from its start to its end, and the
    processor's time of the cheapest."""
    took, used = [], []
    for _ in range(times):
        begun, before = time.perf_counter(), children_cpu()
        ran = subprocess.run(command, cwd=project, capture_output=True, check=False)
        took.append(time.perf_counter() - begun)
        used.append(children_cpu() - before)
        if ran.returncode not in (0, 1):  # 1: something is amiss, and it says so
            raise RuntimeError(ran.stderr.decode()[-200:])
    return {"seconds": min(took), "cpu": min(used)}


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=["cos", "python"])
    subject = parser.parse_args().subject
    with tempfile.TemporaryDirectory() as folder:
        project = install(Path(folder))
        cos = [str(Path(sys.executable).with_name("cos"))]
        bare = [sys.executable, "-c", "pass"]
        commands = {each: bare if subject == "python" else [*cos, *each.split()] for each in COMMANDS}
        found = version("custodes") if subject == "cos" else sys.version.split()[0]
        serve(found, {name: partial(seconds, command, project) for name, command in commands.items()})


if __name__ == "__main__":
    main()
