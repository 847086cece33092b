"""The project's adapters as they stand now, looked at once for all that ask in one pass of the host's loop.

To look is two dozen stats, and a thousand children that are asked for in one breath, or sixteen that one
commit lets in, would get the same answer each: nothing else of the host runs between them. What changes on
the disk is seen in the next pass. The policy is no part of it: one stat tells each time whether that changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import anyio.lowlevel

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.store import run_soon


@dataclass(frozen=True, slots=True)
class View:
    registry: Registry
    catalog: Catalog


class Outlook:
    """Ask it in the host's loop."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._view: View | None = None

    def now(self) -> View:
        """What was seen in this pass, or a moment before it began."""
        if self._view is None:
            registry = Registry.discover(self._project)
            self._view = View(registry, Catalog.of(registry))
            run_soon(anyio.lowlevel.current_token(), self._forget)
        return self._view

    def _forget(self) -> None:
        self._view = None
