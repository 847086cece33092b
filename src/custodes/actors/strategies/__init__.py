"""Restart strategies: pure machines from (children, who failed) to a plan. The supervisor executes it.

Stop in the order given (the reverse of the start order), then start in the order given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from .one_for_all import one_for_all
from .one_for_one import one_for_one
from .plan import Plan, Sibling
from .rest_for_one import rest_for_one

__all__ = ["STRATEGIES", "Plan", "Sibling", "Strategy", "one_for_all", "one_for_one", "rest_for_one"]

Strategy = Literal["one_for_one", "one_for_all", "rest_for_one"]

STRATEGIES: dict[Strategy, Callable[[Iterable[Sibling], str], Plan]] = {
    "one_for_one": one_for_one,
    "one_for_all": one_for_all,
    "rest_for_one": rest_for_one,
}
