"""Each child stands alone: only the one that failed is started again."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Plan, Sibling


def one_for_one(children: Iterable[Sibling], failed: str) -> Plan:  # noqa: ARG001  # the shape all strategies share
    return Plan(start=(failed,))
