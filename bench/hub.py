"""What the Hub costs: pages, streams, memory, and the work that it shows.

Times of pages are those of a whole answer over HTTP from a Hub in a process of its own, beside the floor: an
answer of the same server in which nothing is rendered. With chromium and playwright installed, the first
contentful paint of a real browser stands beside them. The work is a fan-out whose runtime answers at once,
with a Hub that a page follows, and without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.suite.contest import Contender, ours
from bench.suite.measure import Base, Bench, Measure, Target

HUB = "the Hub"
FLOOR = "an answer in which nothing is rendered"
ALONE = "without a Hub"
FOLLOWED = "with a Hub that a page follows"
CHILDREN = 1_000
WORK = 200
WORK_ROUNDS = 10
"""As many as it takes for a tenth: the pace would count the start of a Hub for each."""


def measures(quick: bool) -> Iterator[Measure]:
    children = 100 if quick else CHILDREN
    yield Measure("settings", children, "the settings page, whole", base=Base(FLOOR))
    yield Measure("tree", children, f"the page of {children:,} children, whole", base=Base(FLOOR))
    yield Measure("paint settings", children, "settings, first paint", key="paint_s", rounds=2)
    yield Measure("paint tree", children, f"{children:,} children, first paint", key="paint_s", rounds=2)
    yield Measure("stream", children, "row changes a second that a page follows", key="changes", rounds=2)
    yield Measure("stream", children, "parts a second that tell of them", key="parts", rounds=2)
    yield Measure("stream", children, "from the last commit until it is told", key="lag_s", rounds=2)
    yield Measure("stream", children, "memory of the Hub after it", key="bytes", rounds=2)
    yield Measure("browser", children, "row changes a second that chromium follows", key="changes", rounds=2)
    yield Measure("browser", children, "from the last commit until chromium shows it", key="lag_s", rounds=2)
    yield Measure(
        "work",
        WORK,
        f"a child of {WORK}, the host's own process",
        rounds=WORK_ROUNDS,
        base=Base(ALONE),
        targets=(Target(FOLLOWED, 1.1),),
    )


def contenders(_: ExitStack, __: Path | None) -> Iterator[Contender]:
    yield ours(FLOOR, "hub_subject", "nothing")
    yield ours(HUB, "hub_subject", "hub")
    yield ours(ALONE, "hub_subject", "alone")
    yield ours(FOLLOWED, "hub_subject", "followed")


BENCH = Bench(
    "hub",
    "The floor is an answer in which nothing is rendered; the paint is that of a real chromium.",
    measures,
    contenders,
)
