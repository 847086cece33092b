"""What a small bench of no machine in particular found."""

from __future__ import annotations

from bench.suite.measure import Base, Measure, Plot, Target
from bench.suite.results import Entrant, Found, Sample

OURS, FLOOR, PEER = "custodes", "by hand", "a peer"


def rounds(*figures: tuple[float, float]) -> tuple[dict[str, float], ...]:
    """A round for each pair of the clock's and the processor's seconds."""
    return tuple({"seconds": seconds, "cpu": cpu} for seconds, cpu in figures)


def found(*, most: float = 2.0, floor: str = FLOOR) -> Found:
    """Ours takes 1.5 times the floor's processor time in every round, however the rounds are stretched."""
    return Found(
        at="2026-01-02",
        machine="some machine",
        load=(0.5, 8.0),
        about="The floor is by hand.",
        entrants=(
            Entrant(FLOOR, "1"),
            Entrant(OURS, "2"),
            Entrant(PEER, cannot="cannot be installed: no disk"),
        ),
        measures=(
            Measure("one", 1, "one call", base=Base(FLOOR), targets=(Target(OURS, most, floor=floor),)),
            Measure("one", 10, "each of ten", base=Base(size=1)),
        ),
        samples=(
            Sample(FLOOR, "one", 1, rounds((2e-6, 1e-6), (9e-6, 2e-6), (4e-6, 3e-6))),
            Sample(OURS, "one", 1, rounds((9e-6, 1.5e-6), (3e-6, 3e-6), (5e-6, 4.5e-6))),
            Sample(OURS, "one", 10, rounds((9e-6, 3e-6), (3e-6, 6e-6), (5e-6, 9e-6))),
        ),
        plots=(
            Plot("bars", "one", "One call <quick & plain>", 1),
            Plot("lines", "one", "By size"),
            Plot("cases", OURS, "By case"),
        ),
    )
