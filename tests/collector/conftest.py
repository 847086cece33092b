"""A real Phoenix for the session: `scripts/test --collector` installs it into an environment of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".collector" / "bin" / "python"
PATIENCE_S = 240
"""How long its first start may take, in seconds: it makes its database."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its base address."""
    if not PYTHON.exists():
        pytest.skip("no collector is installed: scripts/test --collector installs it")
    folder = tmp_path_factory.mktemp("phoenix")
    port = free_port()
    environment = {
        **os.environ,
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [PYTHON, Path(__file__).with_name("serve_phoenix.py")], env=environment, stdout=log, stderr=log
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while not _answers(url):
                assert server.poll() is None, (folder / "log").read_text()[-4000:]
                assert time.monotonic() < until, "it did not start"
                time.sleep(0.5)  # a stranger's program, which tells nobody when it is ready
            yield url
        finally:
            server.terminate()
            server.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/v1/projects", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False
