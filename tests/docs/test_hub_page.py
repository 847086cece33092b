"""docs/hub.md: its requests are sent as typed, to a Hub that was started as it says; its tables are true."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import msgspec
import pytest

from custodes.hub.openapi import document
from support.cos import Cos, Tiered
from support.pages import ROOT
from support.program import running
from support.projects import cos, project, tiered

__all__ = ["cos", "project", "tiered"]

PAGE = (ROOT / "docs" / "hub.md").read_text(encoding="utf-8")
COS = [sys.executable, "-m", "custodes.cli"]


@contextmanager
def started(project: Path, *options: str) -> Iterator[str]:
    """A Hub on a port that is free, ended as a person ends it; its host and port."""
    with running(
        [*COS, "hub", "--port", "0", *options],
        cwd=project,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": "true"},  # what `--open` asks, and nothing comes of it
    ) as hub:
        assert hub.stdout is not None
        found = re.search(r"http://(\S+?)/?$", hub.stdout.readline().strip())
        assert found
        yield found[1]
        hub.send_signal(signal.SIGINT)
        hub.stdout.read()


@pytest.fixture
def address(tiered: Tiered, cos: Cos) -> Iterator[str]:
    assert cos("supervision", "enable").code == 0
    with started(tiered.project) as found:
        yield found


def test_every_command_that_starts_it_does(tiered: Tiered) -> None:
    typed = re.findall(r"^cos hub(.*)$", PAGE, re.MULTILINE)
    assert len(typed) == 3
    for options in typed:
        with started(tiered.project, *shlex.split(options, comments=True)) as found:
            assert httpx2.get(f"http://{found}/settings", timeout=30).status_code == 200


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="no curl or no jq here")
def test_its_requests_change_the_policy(address: str, cos: Cos) -> None:
    (typed,) = re.findall(r"^```\w*\n(token=.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert typed.count("localhost:8787") == 2
    subprocess.run(
        ["bash", "-euc", typed.replace("localhost:8787", address)], check=True, stdout=subprocess.DEVNULL
    )
    shown = cos("supervision", "show", "--format", "json").document
    assert shown["policy"]["roles"]["reviewer"]["effort"] == "low"


def test_every_option_and_every_path_of_its_tables_is_there() -> None:
    help_text = subprocess.run([*COS, "hub", "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^\| `(--\w+)", PAGE, re.MULTILINE)
    assert len(options) == 5
    assert all(option in help_text for option in options)
    told = set(re.findall(r"`([A-Z]+ /api/[^`?]*)", PAGE))
    known = {
        f"{method.upper()} {path}"
        for path, methods in msgspec.to_builtins(document())["paths"].items()
        for method in methods
    }
    assert told == known | {"GET /api/openapi.json"}


def test_every_picture_is_there_and_is_shown() -> None:
    shown = re.findall(r"\]\((hub/[^)]*)\)", PAGE)
    assert set(shown) == {f"hub/{file.name}" for file in (ROOT / "docs" / "hub").iterdir()}
