"""How a measurement is declared: what, among whom, held against whom, and the target.

A figure is the median of the rounds. A ratio is of the means of all of them, which are taken in turn, and by
default of the processor's time: the clock's is stretched by whatever else a machine does, and differently for
what waits for a disk and for what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from bench.suite.contest import Contender

ROUNDS = 20
QUICK_ROUNDS = 10
Place = tuple[str, int]
"""A case and a size: what is asked for."""
LOOPS = ("asyncio", "trio")


class Base(msgspec.Struct, frozen=True):
    """What a figure is held against; what is empty is the figure's own."""

    contender: str = ""
    case: str = ""
    size: int | None = None


class Target(msgspec.Struct, frozen=True):
    """``most`` is a ratio to the measure's base; with ``absolute`` seconds, bytes or a count. ``floor`` is
    what stops whoever misses it: a contender of the same measure, whose figure is shown, or words."""

    contender: str
    most: float
    absolute: bool = False
    floor: str = ""


class Measure(msgspec.Struct, frozen=True):
    """
    ``key`` is the figure that is shown, ``by`` the one that ratios and targets go by (``cpu`` for seconds).
    ``among`` names the contenders that are asked; empty: all that know the case. ``rounds`` of 0 are as many
    as the run has, fewer for whom they take too long (`bench.suite.pace`). With ``bounded`` it is left out
    where it would take longer than the suite waits, reckoned from the contender's last size.
    """

    case: str
    size: int
    title: str
    key: str = "seconds"
    by: str = ""
    rounds: int = 0
    among: tuple[str, ...] = ()
    base: Base | None = None
    targets: tuple[Target, ...] = ()
    bounded: bool = False

    @property
    def judged_by(self) -> str:
        return self.by or ("cpu" if self.key == "seconds" else self.key)

    @property
    def place(self) -> Place:
        return (self.case, self.size)

    @property
    def base_place(self) -> Place:
        """Where the figures are that it is held against; without a base its own."""
        base = self.base or Base()
        return (base.case or self.case, self.size if base.size is None else base.size)


class Plot(msgspec.Struct, frozen=True):
    """``bars``: a case's contenders at one size. ``lines``: its sizes, a line for each contender. ``cases``:
    every measure of one contender, who is named by ``case``. No ``key``: what each measure is judged by."""

    kind: Literal["bars", "lines", "cases"]
    case: str
    title: str
    size: int = 0
    key: str = "cpu"


@dataclass(frozen=True)
class Bench:
    """
    :param about: a line on what its floor and its peers are.
    :param measures: from whether the run is a quick one.
    :param contenders: from a stack for what they need beside them, and the folder for the peers'
        environments (None: without peers).
    """

    name: str
    about: str
    measures: Callable[[bool], Iterable[Measure]]
    contenders: Callable[[ExitStack, Path | None], Iterable[Contender]]
    plots: tuple[Plot, ...] = ()
