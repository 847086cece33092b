"""What a life is like: each draws its own kind of trouble, so that rare ones meet often somewhere.

A life that does a little of everything seldom has two limits of one pool at once; one whose runtimes hardly
do anything else has them all the time ("swarm testing").
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SCOPES = ((), ("a",), ("a/b",), ("a/b/c", "d"), ("d",), ("d/e", "f"), ("f",))
"""Those of mutable work. The empty one is the whole project."""


@dataclass(frozen=True)
class Temper:
    """Probabilities, and what is drawn from; seconds are virtual."""

    roles: tuple[str, ...]
    scopes: tuple[tuple[str, ...], ...]
    adapters: tuple[str, ...]
    models: tuple[str, ...]
    waits: tuple[int, ...]
    timeouts: tuple[float, ...]
    pause_s: float
    """How long a parent thinks at most before it asks for one more."""
    cancels: float
    """How likely a child is cancelled by its parent."""
    early_ends: float
    """How likely a parent ends its fan-out early, in whatever way."""
    limits: float
    """How likely each limit of a budget is set."""
    lavish: int
    """How many times its estimate a call may use."""
    statement_s: float
    """How long one transaction of the store takes at most."""
    busy_gap_s: float
    """The longest time in which nobody else writes to the store."""


def draw_temper(draw: random.Random) -> Temper:
    return Temper(
        roles=draw.choice([("reviewer", "implementer", "implementer"), ("implementer",), ("reviewer",)]),
        scopes=draw.choice([SCOPES, SCOPES, (("a",), ("a/b",), ("d",))]),
        adapters=draw.choice([("", "", "one", "two"), ("",), ("one",)]),
        models=draw.choice([("", "", "small", "large"), ("",)]),
        waits=draw.choice([(0,), (0, 0, 6, 60), (60,)]),
        timeouts=draw.choice([(2.0, 5.0, 20.0), (30.0,)]),
        pause_s=draw.choice([0.0, 1.0, 6.0]),
        cancels=draw.choice([0.0, 0.1, 0.5]),
        early_ends=draw.choice([0.0, 0.2, 0.6]),
        limits=draw.choice([0.0, 0.3, 0.7]),
        lavish=draw.choice([1, 2]),
        statement_s=draw.choice([0.004, 0.004, 0.1]),
        busy_gap_s=draw.choice([1e9, 10.0, 2.0]),
    )


def draw_weights(draw: random.Random, usual: dict[str, int]) -> dict[str, int]:
    """How often each deed is done: in some lives never, in some again and again."""
    weights = {deed: weight * draw.choice([0, 1, 1, 6]) for deed, weight in usual.items()}
    return weights if any(weights.values()) else usual
