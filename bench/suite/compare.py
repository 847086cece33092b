"""Two runs beside one another: does every ratio say the same, whatever else the machine did?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.suite.measure import Measure
from bench.suite.reckoning import ratios
from bench.suite.results import Results
from bench.suite.table import table
from bench.suite.words import digits

AGREE = 0.3
"""Two ratios agree where the greater is at most so much more than the less."""


class Pair(NamedTuple):
    bench: str
    title: str
    contender: str
    first: float
    second: float

    @property
    def apart(self) -> float:
        """How much more the greater is: 0.3 for 30 %."""
        return max(self.first, self.second) / min(self.first, self.second) - 1


def pairs(first: Results, second: Results) -> Iterator[Pair]:
    """Every ratio that both runs have."""
    for name, found in first.benches.items():
        if name not in second.benches:
            continue
        others = {(_place(each), who): value for each, who, value in ratios(second.benches[name])}
        for measure, who, value in ratios(found):
            place = (_place(measure), who)
            if place in others and value > 0 and others[place] > 0:
                yield Pair(name, measure.title, who, value, others[place])


def _place(measure: Measure) -> tuple[str, ...]:
    return (measure.case, str(measure.size), measure.key, measure.title)


def comparison(first: Results, second: Results) -> tuple[list[str], bool]:
    """The words, and whether all agree. The ones furthest apart come first."""
    found = sorted(pairs(first, second), key=lambda each: -each.apart)
    if not found:
        return ["the two have no ratio in common"], False
    differ = [each for each in found if each.apart > AGREE]
    rows = [
        [each.bench, each.title, each.contender, digits(each.first), digits(each.second), f"{each.apart:.0%}"]
        for each in found
    ]
    lines = list(table(["", "", "", "first", "second", "apart"], rows, frozenset({3, 4, 5})))
    agree = len(found) - len(differ)
    lines += ["", f"{agree} of {len(found)} ratios agree within {AGREE:.0%}."]
    lines += [_loads(name, first, second) for name in first.benches if name in second.benches]
    return lines, not differ


def _loads(name: str, first: Results, second: Results) -> str:
    one, two = first.benches[name].load, second.benches[name].load
    return f"{name}: load {one[0]} to {one[1]}, and {two[0]} to {two[1]}"
