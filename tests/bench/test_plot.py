"""Drawings: well-formed, legible in light and dark, the same for the same results, and of no machine."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml

import msgspec
import pytest

from bench.suite.measure import Plot
from bench.suite.plot import COLOURS, DARK, drawing
from support.found import found

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_it_is_well_formed_and_tells_nothing_of_the_machine_or_the_day(number: int) -> None:
    plot = found().plots[number]
    text = drawing(found(), plot)
    root = Xml.fromstring(text)  # noqa: S314 - our own
    assert root.get("aria-label") == plot.title
    assert root.findtext(f"{SVG}text") == plot.title
    assert not re.search(r"2026|machine|/|load", re.sub(r"</|/>|http://www\.w3\.org/\S+|1/", "", text))
    assert text == drawing(msgspec.structs.replace(found(), at="2027-01-01", machine="another"), plot)


def test_bars_are_as_long_as_their_figures_are_great() -> None:
    root = Xml.fromstring(drawing(found(), found().plots[0]))  # noqa: S314 - our own
    bars = [float(each.get("width", "")) for each in root.iter(f"{SVG}rect") if each.get("class") != "card"]
    assert len(bars) == 2
    assert bars == sorted(bars)
    assert [each.text for each in root.iter(f"{SVG}text")][1:] == ["by hand", "2 µs", "custodes", "3 µs"]


def test_a_line_rises_with_its_figures() -> None:
    root = Xml.fromstring(drawing(found(), found().plots[1]))  # noqa: S314 - our own
    (_, ours) = [each.get("points", "").split() for each in root.iter(f"{SVG}polyline")]
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in ours)
    assert x1 < x2
    assert y1 > y2, "greater is higher up"


def test_where_nobody_could_the_drawing_says_so() -> None:
    assert "nobody could" in drawing(found(), Plot("lines", "none", "None"))
    assert "nobody could" in drawing(found(), Plot("bars", "none", "None"))


@pytest.mark.parametrize(("colours", "card"), [(COLOURS, "#ffffff"), (DARK, "#16191d")])
def test_every_colour_stands_out_from_its_card(colours: tuple[str, ...], card: str) -> None:
    """WCAG 2.2, 1.4.11: graphics have a contrast of 3 to 1."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    for colour in colours:
        one, other = light(colour), light(card)
        assert max(one, other) / min(one, other) >= 3, colour
