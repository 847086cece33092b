"""The project's adapters as they stand now, looked at once for all that ask in one pass of the host's loop.

To look is two dozen stats, and a thousand children that are asked for in one breath, or sixteen that one
commit lets in, would get the same answer each: nothing else of the host runs between them. What changes on
the disk is seen in the next pass. The policy is no part of it: one stat tells each time whether that changed.

As long as nothing of it changes the same view stands, with the routes that were asked of it: a thousand
children of one role ask one question.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import anyio.lowlevel

from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.history import Record
from custodes.policy.policy import Policy
from custodes.policy.routing import Resolution, RouteRequest, resolve
from custodes.store import run_soon

ROUTES_KEPT = 256
"""Of how many questions a view keeps the answers."""


class View:
    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self.registry = registry
        self.catalog = catalog
        self._routes: dict[tuple[RouteRequest, str, int, int], _Routed] = {}

    def resolve(
        self, request: RouteRequest, policy: Policy, session: str, records: tuple[Record, ...] = ()
    ) -> Resolution:
        """:func:`~custodes.policy.routing.resolve` of the adapters as they stand here."""
        # By the identity of what is large and frozen; kept beside the answer, so that none is another's.
        key = request, session, id(policy), id(records)
        known = self._routes.get(key)
        if known is None:
            if len(self._routes) >= ROUTES_KEPT:
                self._routes.clear()
            resolution = resolve(request, policy, self.catalog, session, records)
            known = self._routes[key] = _Routed(policy, records, resolution)
        return known.resolution


class _Routed(NamedTuple):
    policy: Policy
    records: tuple[Record, ...]
    resolution: Resolution


class Outlook:
    """Ask it in the host's loop."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._view: View | None = None
        self._current = False

    def now(self) -> View:
        """What was seen in this pass, or a moment before it began."""
        view = self._view
        if view is None or not self._current:
            registry = Registry.discover(self._project)
            catalog = Catalog.of(registry)
            if view is None or view.registry is not registry or view.catalog != catalog:
                view = self._view = View(registry, catalog)
            self._current = True
            run_soon(anyio.lowlevel.current_token(), self._forget)
        return view

    def _forget(self) -> None:
        self._current = False
