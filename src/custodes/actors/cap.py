"""Caps on dynamic children: how many are alive here and below, and how deep they stand."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ChildLimit


@dataclass(slots=True)
class Cap:
    """One supervisor's. A dynamic child must fit under it and under every one above."""

    path: str
    max_children: int
    max_depth: int
    above: Cap | None = None
    dynamic: bool = False  #: this supervisor is itself a dynamic child of the one above
    alive: int = 0  #: dynamic children, here and below

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if self.max_children < 0 or self.max_depth < 0:
            return (
                f"max_children and max_depth must be 0 or more, not {self.max_children} and {self.max_depth}"
            )
        return None

    def admit(self, child: str) -> None:
        """:raises ChildLimit: one more dynamic child of this supervisor is too many, here or above."""
        levels = 1
        cap: Cap | None = self
        while cap is not None:
            if cap.alive >= cap.max_children:
                raise ChildLimit(cap.path, "children", cap.max_children, child)
            if levels > cap.max_depth:
                raise ChildLimit(cap.path, "depth", cap.max_depth, child)
            levels += cap.dynamic
            cap = cap.above

    def count(self, change: int) -> None:
        cap: Cap | None = self
        while cap is not None:
            cap.alive += change
            cap = cap.above
