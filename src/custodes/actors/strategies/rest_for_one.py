"""Later children build on earlier ones: those started after the one that failed go down and up with it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile

from .plan import Plan, Sibling, restart_group


def rest_for_one(children: Iterable[Sibling], failed: str) -> Plan:
    return restart_group(tuple(dropwhile(lambda child: child.id != failed, children)), failed)
