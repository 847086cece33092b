"""Who is asked when: what is held against one another side by side, little by little. Pure.

A processor is not equally fast from one tenth of a second to the next: other work shares its caches, and on
many machines its very core. Many short asks in turn give each contender its share of both.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.suite.measure import Measure, Place

LEAST_ASKS = 4
PACE_S = 0.4
"""What a contender may use of the processor in a round, by the mean: one that takes longer is left out of
some, evenly."""


def due(number: int, rounds: int, asked: int, each: float) -> bool:
    """Whether one that was asked so many times, and uses so many seconds of the processor each time, is
    asked in this of so many rounds, counted from 0. All are asked `LEAST_ASKS` times, in no fewer rounds."""
    return asked * each <= PACE_S * number or asked * rounds <= LEAST_ASKS * number


def by_place(asked: Iterable[Measure]) -> Iterable[list[Measure]]:
    """Those of one case and size together: one ask gives all their figures."""
    places: dict[Place, list[Measure]] = {}
    for each in asked:
        places.setdefault(each.place, []).append(each)
    return places.values()


def by_base(asked: Iterable[Measure]) -> list[list[Measure]]:
    """Those together of which one is held against the other: the rounds of a ratio's two sides are the same,
    and no other case comes between them."""
    groups: dict[Place, list[Measure]] = {}
    for each in asked:
        group = groups.setdefault(each.base_place, [])
        other = groups.setdefault(each.place, group)
        if other is not group:
            group += other
            groups |= {place: group for place, its in groups.items() if its is other}
        group.append(each)
    return list({id(group): group for group in groups.values()}.values())
