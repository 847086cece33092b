"""The page on telemetry names what is emitted, all of it and nothing else, and options that there are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from custodes.adapters import Registry
from custodes.telemetry import conventions
from support.cos import Cos
from support.genai import ATTRIBUTES, REGISTRY
from support.otlp_sink import sink
from support.pages import blocks
from support.projects import cos, programs, project

__all__ = ["cos", "programs", "project"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "observability.md").read_text()
NAMES = {value for key, value in vars(conventions).items() if key.isupper() and isinstance(value, str)}
NAMED = set(re.findall(r"`((?:custodes|gen_ai)\.[a-z_.]+[a-z])`", PAGE))


def test_every_name_of_ours_is_on_the_page_and_every_name_on_the_page_is_emitted() -> None:
    ours = {name for name in NAMES if name.startswith("custodes.")}
    assert ours == {name for name in NAMED if name.startswith("custodes.")} - {"custodes.telemetry"}
    foreign = {name for name in NAMED if name.startswith("gen_ai.")}
    assert foreign <= set(ATTRIBUTES) | set(REGISTRY["metrics"])
    assert {name for name in NAMES if name in REGISTRY["metrics"]} <= foreign


@pytest.mark.parametrize("command", ["run", "dispatch", "mcp", "demo"])
def test_the_option_is_there(cos: Cos, command: str) -> None:
    assert "--otlp" in cos(command, "--help").out


def test_the_settings_are_options_of_the_program(cos: Cos) -> None:
    told = cos("supervision", "set", "--help").out
    for option in set(re.findall(r"--(?:no-)?telemetry-[a-z-]+", PAGE)):
        assert option in told


def test_the_runtimes_that_go_through_the_relay_are_those_that_name_their_spans(tmp_path: Path) -> None:
    found = Registry.discover(tmp_path).descriptors.values()
    relayed = {descriptor.label for descriptor in found if descriptor.spans}
    assert relayed == set(re.findall(r"^\| ([\w ]+) \| the relay \|", PAGE, re.MULTILINE))


ELSEWHERE = ("pip install", "phoenix serve")
"""What other tests type: see test_pages.py."""


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_what_a_reader_types_and_runs_reaches_a_collector(programs: Path, tmp_path: Path) -> None:
    (programs / "review.yaml").write_text("steps: [{id: a, role: reviewer, model: look, prompt: Look.}]\n")
    cos = tmp_path / "bin" / "cos"
    cos.parent.mkdir()
    cos.write_text(f'#!/bin/sh\nexec {sys.executable} -W error -m custodes.cli "$@"\n')
    cos.chmod(0o755)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACE"))}
    environment = {**clean, "PATH": f"{cos.parent}:{os.environ['PATH']}"}
    with sink() as collector:
        for block in blocks("docs/observability.md"):
            text = re.sub(r"http://localhost:(4318|6006)", collector.url, block.text)
            lines = [line for line in text.splitlines() if not line.startswith(ELSEWHERE)]
            argv = {
                "bash": ["bash", "-euc", "\n".join(lines)],
                "python": [sys.executable, "-W", "error", "-c", text],
            }[block.language]
            ran = subprocess.run(
                argv, cwd=programs, env=environment, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, (block, ran)
            if found := re.search(r"^conversation: (\S+)$", ran.stdout, re.MULTILINE):
                environment["CONVERSATION"] = found[1]
            if block.language == "python":
                assert ran.stdout == "True\n"
    assert [span.name for span in collector.spans].count("invoke_agent reviewer") == 4
    (sent,) = (json.loads(body) for body in collector.raw if body.startswith(b"{"))
    assert sent == json.loads((programs / "trace.json").read_text())
    assert "invoke_agent reviewer" in json.dumps(sent)


def test_the_picture_is_there() -> None:
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", PAGE, re.MULTILINE)
    assert (DOCS / picture).stat().st_size > 10_000
