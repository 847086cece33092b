"""docs/hub.md: its requests are sent as typed, to a Hub that was started as it says; its tables are true."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from custodes.hub.openapi import document
from support.cos import Cos, Tiered
from support.pages import ROOT
from support.projects import cos, project, tiered

__all__ = ["cos", "project", "tiered"]

PAGE = (ROOT / "docs" / "hub.md").read_text(encoding="utf-8")
COS = [sys.executable, "-m", "custodes.cli"]


@pytest.fixture
def address(tiered: Tiered, cos: Cos) -> Iterator[str]:
    """A Hub on a port that is free, ended as a person ends it."""
    assert cos("supervision", "enable").code == 0
    with subprocess.Popen(
        [*COS, "hub", "--port", "0"], cwd=tiered.project, stdout=subprocess.PIPE, text=True
    ) as hub:
        assert hub.stdout is not None
        found = re.search(r"http://(\S+?)/?$", hub.stdout.readline().strip())
        assert found
        yield found[1]
        hub.send_signal(signal.SIGINT)
        hub.stdout.read()


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
    assert len(options) == 4
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
