"""The page on telemetry names what is emitted, all of it and nothing else, and options that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from custodes.adapters import Registry
from custodes.telemetry import conventions
from support.cos import Cos
from support.genai import ATTRIBUTES, REGISTRY
from support.projects import cos, project

__all__ = ["cos", "project"]

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


def test_the_picture_is_there() -> None:
    (picture,) = re.findall(r"^!\[.+\]\((.+)\)$", PAGE, re.MULTILINE)
    assert (DOCS / picture).stat().st_size > 10_000
