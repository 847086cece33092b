"""From figures to medians, ratios and verdicts. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from bench.suite.measure import Measure, Target
from bench.suite.results import Found


class Figure(NamedTuple):
    """A median with the least and the most of the rounds."""

    median: float
    least: float
    most: float


class Verdict(NamedTuple):
    """One target and what was found: ``value`` is what it goes by, ``clock`` the same by the clock where that
    is another. None: there is none; ``why`` says it."""

    measure: Measure
    target: Target
    value: float | None
    clock: float | None
    why: str = ""

    @property
    def met(self) -> bool:
        return self.value is not None and self.value <= self.target.most


def series(found: Found, contender: str, case: str, size: int, key: str) -> list[float]:
    """One figure, round by round; empty where it was not taken."""
    sample = found.sample(contender, case, size)
    return [each[key] for each in sample.rounds if key in each] if sample else []


def figure(found: Found, measure: Measure, contender: str, key: str = "") -> Figure | None:
    values = series(found, contender, measure.case, measure.size, key or measure.key)
    return Figure(statistics.median(values), min(values), max(values)) if values else None


def ratio(found: Found, measure: Measure, contender: str, key: str = "") -> float | None:
    """Of the means of all rounds, to the base's. None: no base, or no figure of one of the two.

    A median would jump from one to the other where a processor has two speeds, as one does whose core is
    shared; and a mean is of all the collections of cycles that there were.
    """
    base = measure.base
    if base is None:
        return None
    key = key or measure.judged_by
    mine = series(found, contender, *measure.place, key)
    theirs = series(found, base.contender or contender, *measure.base_place, key)
    if not mine or not any(theirs):
        return None
    return statistics.fmean(mine) / statistics.fmean(theirs)


def verdicts(found: Found) -> Iterator[Verdict]:
    """Every target of a bench, in the order they are declared."""
    for measure in found.measures:
        for target in measure.targets:
            values: list[float | None] = []
            for key in (measure.judged_by, measure.key):
                if target.absolute:
                    taken = figure(found, measure, target.contender, key)
                    values.append(taken.median if taken else None)
                else:
                    values.append(ratio(found, measure, target.contender, key))
            clock = values[1] if measure.judged_by != measure.key else None
            yield Verdict(measure, target, values[0], clock, _why(found, measure, target))


def ratios(found: Found) -> Iterator[tuple[Measure, str, float]]:
    """Every ratio of a bench, but a base's to itself."""
    for measure in found.measures:
        for entrant in found.entrants:
            if measure.among and entrant.name not in measure.among:
                continue
            if measure.base and measure.base.contender == entrant.name:
                continue
            if (value := ratio(found, measure, entrant.name)) is not None:
                yield measure, entrant.name, value


def _why(found: Found, measure: Measure, target: Target) -> str:
    """Why there is no figure, in the words of whoever could not."""
    for name in (target.contender, measure.base.contender if measure.base else ""):
        for entrant in found.entrants:
            if entrant.name == name and entrant.cannot:
                return f"{name}: {entrant.cannot}"
        sample = found.sample(name, measure.case, measure.size)
        if sample and sample.cannot:
            return f"{name}: {sample.cannot}"
    return ""
