"""All stand or none: the siblings of the one that failed are stopped, and all are started again."""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Plan, Sibling, restart_group


def one_for_all(children: Iterable[Sibling], failed: str) -> Plan:
    return restart_group(tuple(children), failed)
