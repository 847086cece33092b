"""Every bench by one command: what was found goes into bench/results.json and docs/performance.md.

    scripts/bench [NAME…] [--quick] [--rounds N] [--peers-in FOLDER] [--no-peers]

Without a name all of them run, one after another: each takes minutes, and the peers' installation more. What
a bench that does not run this time has found before stays in both files.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "performance.md"
COMMON = ("quick", "rounds", "peers-in", "no-peers")
BENCHES: dict[str, tuple[str, ...]] = {
    "dispatch": (*COMMON, "json"),
    "growth": ("quick", "rounds", "json"),
    "startup": ("quick", "rounds", "json"),
    "actors": ("rounds",),
    "health": ("peers-in", "no-peers"),
    "policy": ("rounds",),
    "process": (),
    "telemetry": ("rounds",),
    "hub": ("rounds",),
}
"""What each of them can be told."""


def run(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Run one and show it as it goes. Its words, its figures where it writes them, and when it ran."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, "-m", f"bench.{name}"]
        for option in BENCHES[name]:
            value = figures if option == "json" else given[option.replace("-", "_")]
            if value is True:
                command.append(f"--{option}")
            elif value:
                command += [f"--{option}", str(value)]
        said = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                said.append(line)
        found = {
            "at": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "load": round(os.getloadavg()[1], 1),
            "said": "".join(said),
        }
        if process.returncode:
            found["failed"] = process.returncode
        if figures.exists():
            found["figures"] = json.loads(figures.read_text())
        return found


def written(page: str, results: dict[str, Any]) -> str:
    """The page with what each bench said between its marks."""
    for name, found in results.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        head = f"{found['at']}, {found['machine']}, load {found['load']}\n\n"
        block = f"{begin}\n```text\n{head}{found['said'].strip()}\n```\n\n{end}"
        before, mark, rest = page.partition(begin)
        _, closing, after = rest.partition(end)
        if mark and closing:
            page = before + block + after
    return page


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    names = f"of {', '.join(BENCHES)}; all of them where none is named"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--quick", action="store_true", help="few rounds, and nothing large")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--peers-in", type=Path, help="a folder to keep the peers' virtual environments in")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    if unknown := [name for name in given.names if name not in BENCHES]:
        parser.error(f"there is no bench '{unknown[0]}'; there are {', '.join(BENCHES)}")
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in given.names or BENCHES:
        print(f"\n== {name}", flush=True)
        found = run(name, vars(given))
        if "failed" in found:
            print(f"bench: {name} failed, and what it found before stays", file=sys.stderr)
            continue
        results[name] = found
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text(written(PAGE.read_text(), results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
