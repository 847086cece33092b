"""Drawings of what was found, as SVG by hand: a card of its own, light or dark as the reader's screen is.

Nothing of the machine, the day or a path is in one, and the same results draw the same file.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from bench.suite.measure import Plot
from bench.suite.reckoning import series
from bench.suite.results import Found
from bench.suite.words import amount

WIDTH = 720
MARGIN = 24
ROW = 26
NAMES = 270
"""The width of the names beside bars."""
WIDE = 50
"""Bars whose greatest is more than so many times the least go by powers of ten, which the card then says."""
HEIGHT = 260
"""Of the field of lines."""
COLOURS = ("#2f6fd0", "#c2570c", "#14804a", "#8b3fc0", "#b3261e", "#00798c", "#7a6a00", "#5c6670")
DARK = ("#7fb0ff", "#ff9d5c", "#5fd49a", "#cf9bff", "#ff8f87", "#5fd3e6", "#e0cc5c", "#aab4c0")
STYLE = (
    ".card{fill:#ffffff;stroke:#d0d5dc}.ink{fill:#1c2127}.soft{fill:#4a535e}.rule{stroke:#d9dee5}"
    + "".join(f".f{n}{{fill:{c}}}.s{n}{{stroke:{c}}}" for n, c in enumerate(COLOURS))
    + "@media (prefers-color-scheme:dark){.card{fill:#16191d;stroke:#3a424c}.ink{fill:#eef1f4}"
    ".soft{fill:#b6bec8}.rule{stroke:#343c46}"
    + "".join(f".f{n}{{fill:{c}}}.s{n}{{stroke:{c}}}" for n, c in enumerate(DARK))
    + "}text{font:13px system-ui,sans-serif}.title{font-weight:600;font-size:15px}"
)


class Line(NamedTuple):
    """A contender's medians by size."""

    name: str
    points: tuple[tuple[int, float], ...]


def drawing(found: Found, plot: Plot) -> str:
    if plot.kind == "lines":
        return lines(found, plot)
    if plot.kind == "cases":
        medians = [
            (each.title, _median(found, plot.case, each.case, each.size, plot.key or each.judged_by))
            for each in found.measures
        ]
        return bars(plot, medians, ours=True)
    medians = [
        (each.name, _median(found, each.name, plot.case, plot.size, plot.key)) for each in found.entrants
    ]
    return bars(plot, medians)


def bars(plot: Plot, medians: Iterable[tuple[str, float | None]], *, ours: bool = False) -> str:
    """A bar for each, the shortest first: a peer may take a thousand times as long as another.

    :param ours: all of them are; else those whose name says it.
    """
    values = [(name, taken) for name, taken in medians if taken is not None and taken > 0]
    if not values:
        return _card(plot.title, 90, [_text(MARGIN, 66, "nobody could", "soft")])
    least, most = min(value for _, value in values), max(value for _, value in values)
    low = 10 ** math.floor(math.log10(least))
    wide = most / least > WIDE
    room = WIDTH - NAMES - 2 * MARGIN - 90
    parts = [_text(WIDTH - MARGIN, 32, "by powers of ten", "soft", "end")] if wide else []
    for number, (name, value) in enumerate(sorted(values, key=lambda each: each[1])):
        top = 52 + number * ROW
        share = math.log10(value / low) / math.log10(most / low) if wide else value / most
        length = 2 + (room - 2) * share
        kind = 0 if ours or name.startswith("custodes") else 7
        parts.append(_text(MARGIN + NAMES - 8, top + 13, name, "ink", "end"))
        parts.append(
            f'<rect class="f{kind}" x="{MARGIN + NAMES}" y="{top}" width="{length:.1f}" height="18" rx="2"/>'
        )
        parts.append(_text(MARGIN + NAMES + length + 6, top + 13, amount(value, plot.key), "soft"))
    return _card(plot.title, 66 + len(values) * ROW, parts)


def lines(found: Found, plot: Plot) -> str:
    """A line for each contender over the sizes of a case; both scales go by powers of ten."""
    drawn = list(_lines(found, plot))
    if not drawn:
        return _card(plot.title, 90, [_text(MARGIN, 66, "nobody could", "soft")])
    sizes = sorted({size for line in drawn for size, _ in line.points})
    values = [value for line in drawn for _, value in line.points]
    low = 10.0 ** math.floor(math.log10(min(values)))
    high = 10.0 ** math.ceil(math.log10(max(values) * 1.0001))
    left, right, top, bottom = 90, WIDTH - MARGIN, 56, 56 + HEIGHT
    parts = []

    def across(size: int) -> float:
        first, last = math.log10(sizes[0] + 1), math.log10(sizes[-1] + 1)
        return left + 10 + (right - left - 30) * (math.log10(size + 1) - first) / max(last - first, 1e-9)

    def down(value: float) -> float:
        return bottom - (bottom - top) * math.log10(value / low) / math.log10(high / low)

    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = down(10.0**power)
        parts.append(f'<line class="rule" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 8, y + 4, amount(10.0**power, plot.key), "soft", "end"))
    parts += [_text(across(size), bottom + 20, f"{size:,}", "soft", "middle") for size in sizes]
    for number, line in enumerate(drawn):
        colour = number % len(COLOURS)
        points = [(across(size), down(value)) for size, value in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="s{colour}" fill="none" stroke-width="2" points="{path}"/>')
        parts += [f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points]
        legend = bottom + 46 + number * 20
        parts.append(f'<rect class="f{colour}" x="{left}" y="{legend - 10}" width="12" height="12" rx="2"/>')
        parts.append(_text(left + 20, legend, line.name, "ink"))
    return _card(plot.title, bottom + 56 + len(drawn) * 20, parts)


def _lines(found: Found, plot: Plot) -> Iterator[Line]:
    sizes = sorted({each.size for each in found.samples if each.case == plot.case})
    for entrant in found.entrants:
        points = tuple(
            (size, value)
            for size in sizes
            if (value := _median(found, entrant.name, plot.case, size, plot.key)) is not None and value > 0
        )
        if points:
            yield Line(entrant.name, points)


def _median(found: Found, contender: str, case: str, size: int, key: str) -> float | None:
    values = series(found, contender, case, size, key)
    return statistics.median(values) if values else None


def _card(title: str, height: float, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>\n'
        f"{_text(MARGIN, 32, title, 'ink title')}\n{body}\n</svg>\n"
    )


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
