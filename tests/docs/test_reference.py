"""The reference pages and the list of what is public are those that the code gives."""

from __future__ import annotations

import subprocess
import sys

from support.pages import ROOT


def test_the_reference_and_the_public_surface_are_current() -> None:
    """A difference is a change of what others build on: to be seen in review. The script writes it."""
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_name_of_every_door_can_be_had() -> None:
    surface = (ROOT / "tests" / "surface.txt").read_text(encoding="utf-8")
    for door in ("actors", "store", "telemetry", "adapters", "policy", "overseer", "mcp", "hub", "cli"):
        assert f"custodes.{door}." in surface
    assert "custodes.Supervision.__init__(project: Path | str" in surface
