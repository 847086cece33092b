"""A child with its export as a contender of ``bench/telemetry.py``.

python -m bench.telemetry_subject {asyncio|trio} ENDPOINT   (empty: no SDK)
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path

import anyio

from bench.dispatch_subject import fan_out, install
from bench.suite.contender import Figures, serve
from custodes.telemetry import exporting


def measured(project: Path, backend: str, endpoint: str, size: int) -> Figures:
    """A fan-out with its export; ``leaving_s`` is how long leaving the export took."""
    with ExitStack() as stack:
        if endpoint:
            stack.enter_context(exporting(endpoint, {}))
        found = anyio.run(fan_out, project, size, backend=backend)
        begun = time.perf_counter()
        stack.close()
        return {**found, "leaving_s": time.perf_counter() - begun}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=["asyncio", "trio"])
    parser.add_argument("endpoint")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        case = partial(measured, install(Path(folder)), asked.backend, asked.endpoint)
        serve(version("opentelemetry-sdk") if asked.endpoint else "without", {"fan-out": case})


if __name__ == "__main__":
    main()
