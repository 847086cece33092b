"""A program of a runtime's name that prints what a real one printed, for the real process runner to run.

    here = replay(tmp_path, "gemini", FIXTURES / "gemini" / "429")
    result = await dispatched(runtime, here, tmp_path)

A capture is up to four files: ``.stdout``, ``.stderr``, ``.exit`` (0 where it is missing, negative for a
signal) and ``.report`` (what is written to the file that ``--usage-file`` names).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import msgspec

from custodes.adapters import DispatchRequest, DispatchResult, Progress, Runtime

FIXTURES = Path(__file__).parent.parent / "fixtures" / "runtimes"
_PROGRAM = """#!{python}
import os, pathlib, sys
capture = {capture!r}
def read(kind):
    file = pathlib.Path(capture + kind)
    return file.read_bytes() if file.exists() else b""
for fd, kind in ((1, ".stdout"), (2, ".stderr")):
    said = read(kind)
    while said:
        said = said[os.write(fd, said):]
if "--usage-file" in sys.argv and read(".report"):
    pathlib.Path(sys.argv[sys.argv.index("--usage-file") + 1]).write_bytes(read(".report"))
code = int(read(".exit") or 0)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def replay(folder: Path, binary: str, capture: Path) -> Path:
    """The folder for PATH with the program in it."""
    return stand_in(folder, binary, _PROGRAM.format(python=sys.executable, capture=str(capture)))


def stand_in(folder: Path, binary: str, script: str) -> Path:
    """The folder for PATH with a program of one's own making in it."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    program = place / binary
    program.write_text(script)
    program.chmod(0o755)
    return place


def showing(folder: Path, binary: str, *events: object, then: str = "") -> Path:
    """The folder for PATH with a program that prints these events, and then goes on with ``then``."""
    file = folder / "events"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    return stand_in(folder, binary, f"#!/bin/sh\ncat '{file}'\n{then}\n")


def request(place: Path, folder: Path, **asked: object) -> DispatchRequest:
    """A request whose PATH begins with ``place`` and whose home is ``folder``."""
    plain = DispatchRequest(
        run_id="replay",
        role="reviewer",
        prompt="Say LOOPBACK-OK.",
        mutable=False,
        cwd=str(folder),
        timeout_s=30.0,
        environment={"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)},
    )
    return msgspec.structs.replace(plain, **asked)


async def dispatched(
    runtime: Runtime, place: Path, folder: Path, seen: list[Progress] | None = None, **asked: object
) -> DispatchResult:
    """What a runtime comes to with the program in ``place``; ``seen`` takes what it tells meanwhile."""
    return await runtime.dispatch(request(place, folder, **asked), (seen if seen is not None else []).append)


def aimed(asked: DispatchRequest, folder: Path, binary: str, script: str) -> DispatchRequest:
    """A request that finds this program under that name, with ``folder`` for a home."""
    place = stand_in(folder, binary, script)
    environment = {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    return msgspec.structs.replace(asked, environment={**environment, **asked.environment})


def prints(*lines: str, error: str = "", code: int = 0) -> str:
    """A program that prints these lines to standard output, and ``error`` to standard error."""
    out = "\n".join(lines)
    return f"#!/bin/sh\ncat <<'EOF'\n{out}\nEOF\ncat >&2 <<'EOF'\n{error}\nEOF\nexit {code}\n"
