"""What a strategy sees of a child, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..child_spec import Restart


class Sibling(Protocol):
    """One child, in start order among its siblings. ``alive``: an incarnation is there to be stopped."""

    @property
    def id(self) -> str: ...
    @property
    def restart(self) -> Restart: ...
    @property
    def alive(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Ids to stop, then ids to start, each in the order to follow."""

    stop: tuple[str, ...] = ()
    start: tuple[str, ...] = ()


def restart_group(group: Sequence[Sibling], failed: str) -> Plan:
    """Stop what lives of the group, last started first; start the group again, in its order.

    A temporary sibling is stopped and stays so (OTP: "never restarted, even when a sibling's death causes
    the temporary process to be terminated"). A transient one that had ended is started again with the
    rest: it is part of what the group needs in order to stand.
    """
    return Plan(
        stop=tuple(child.id for child in reversed(group) if child.alive and child.id != failed),
        start=tuple(child.id for child in group if child.restart != "temporary" or child.id == failed),
    )
