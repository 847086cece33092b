"""What a bench found as tables: aligned for a terminal, and Markdown all the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bench.suite.measure import Measure, Target
from bench.suite.reckoning import Verdict, figure, ratio, verdicts
from bench.suite.results import Found, Sample
from bench.suite.words import amount, spread, times


def table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], right: frozenset[int] = frozenset()
) -> Iterator[str]:
    """
    :param right: the columns whose cells end at one line.
    """
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(3, *(len(line[place]) for line in lines)) for place in range(len(lines[0]))]

    def drawn(cells: list[str]) -> str:
        padded = (
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    yield drawn(lines[0])
    rules = ("-" * (width - 1) + ":" if place in right else "-" * width for place, width in enumerate(widths))
    yield f"| {' | '.join(rules)} |"
    yield from (drawn(line) for line in lines[1:])


def figures(found: Found) -> Iterator[str]:
    """All of a bench: what it was run on, who took part, and every figure."""
    yield f"{found.at}, {found.machine}, load {found.load[0]} to {found.load[1]}. {found.about}"
    yield ""
    yield from (f"- {each.name}: {each.cannot or each.version or 'ran'}" for each in found.entrants)
    yield ""
    held = any(each.base or each.targets for each in found.measures)
    if not held and len({(each.case, each.size) for each in found.measures}) == 1:
        yield from _across(found)
        return
    heads = ["", "", "by the clock", "least to most", "processor", "held against", "wanted", ""]
    rows = [row for measure in found.measures for row in _rows(found, measure)]
    yield from table(heads, rows, frozenset({2, 3, 4, 5, 6}))


def _across(found: Found) -> Iterator[str]:
    """Many figures of one ask: a line for each figure, a column for each contender."""
    names = [each.name for each in found.entrants]
    rows = [
        [measure.title, *(amount(taken.median, measure.key) if taken else "" for taken in medians)]
        for measure in found.measures
        for medians in [[figure(found, measure, name) for name in names]]
        if any(taken and taken.median for taken in medians)
    ]
    yield from table(["", *names], rows, frozenset(range(1, len(names) + 1)))


def targets(benches: Mapping[str, Found]) -> Iterator[str]:
    """Every target of every bench with what was found."""
    rows = [
        [
            f"{name}: {each.measure.title}, {each.target.contender}",
            wanted(each.measure, each.target),
            value(each, each.value),
            value(each, each.clock),
            said(each, benches[name]),
        ]
        for name, found in benches.items()
        for each in verdicts(found)
    ]
    yield from table(["", "wanted", "found", "by the clock", ""], rows, frozenset({1, 2, 3}))


def wanted(measure: Measure, target: Target) -> str:
    most = amount(target.most, measure.key) if target.absolute else f"{times(target.most)} x {_base(measure)}"
    return f"≤ {most}".rstrip()


def value(verdict: Verdict, number: float | None) -> str:
    if number is None:
        return ""
    return amount(number, verdict.measure.key) if verdict.target.absolute else f"{times(number)} x"


def said(verdict: Verdict, found: Found) -> str:
    """Pass, or missed with the floor that stops it."""
    if verdict.value is None:
        return f"not measured: {verdict.why or 'no figure'}"
    if verdict.met:
        return "pass"
    floor, key = verdict.target.floor, verdict.measure.judged_by
    taken = figure(found, verdict.measure, floor, key) if floor else None
    if taken is not None:
        return f"missed; the floor, {floor}, takes {amount(taken.median, key)}"
    return f"missed; {floor}" if floor else "missed"


def _rows(found: Found, measure: Measure) -> Iterator[list[str]]:
    judged = {each.target.contender: each for each in verdicts(found) if each.measure == measure}
    title = measure.title
    for entrant in found.entrants:
        sample = found.sample(entrant.name, measure.case, measure.size)
        if sample is None or (measure.among and entrant.name not in measure.among):
            continue
        yield [title, entrant.name, *_told(found, measure, sample), *_judged(found, judged.get(entrant.name))]
        title = ""


def _told(found: Found, measure: Measure, sample: Sample) -> list[str]:
    """Figure, spread, the processor's time, ratio."""
    name = sample.contender
    taken = figure(found, measure, name)
    if taken is None:
        return [sample.cannot, "", "", ""]
    used = figure(found, measure, name, "cpu") if measure.key == "seconds" else None
    held = None if measure.base and measure.base.contender == name else ratio(found, measure, name)
    return [
        amount(taken.median, measure.key),
        "; then ".join(filter(None, (spread(taken, measure.key), sample.cannot))),
        amount(used.median, "cpu") if used else "",
        f"{times(held)} x {_base(measure)}".rstrip() if held is not None else "",
    ]


def _judged(found: Found, verdict: Verdict | None) -> list[str]:
    return [wanted(verdict.measure, verdict.target), said(verdict, found)] if verdict else ["", ""]


def _base(measure: Measure) -> str:
    """What a ratio of it is to, in words."""
    base = measure.base
    assert base is not None
    words = [base.contender] if base.contender else []
    if base.case and not base.contender:
        words.append(base.case)
    elif base.size is not None:
        words.append(f"that of {base.size:,}")
    return ", ".join(words)
