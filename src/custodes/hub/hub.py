"""What every page and every call of the Hub works with, for one project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
from starlette.requests import Request

from custodes.hub import trace_link
from custodes.hub.access import Access
from custodes.hub.adapters_view import AdapterNow, adapters_now
from custodes.hub.live import Views
from custodes.hub.project_view import HubFile, ProjectView
from custodes.hub.watch import Watch
from custodes.policy.overview import overview_of
from custodes.supervision.pools.health_report import report_of

BY = "hub"
"""Who it was, in the audit log."""


class Hub:
    """Use :func:`open_hub`."""

    def __init__(self, project: ProjectView, access: Access, trace_url: str) -> None:
        self.project = project
        self.access = access
        self.trace_url = trace_url
        self.watch: Watch = Watch(project)
        self.views: Views = Views(self.watch)

    async def adapters(self) -> tuple[AdapterNow, ...]:
        """:raises SettingsError: the settings cannot be read.
        :raises StoreError: the database cannot be read.
        """
        overview = await anyio.to_thread.run_sync(overview_of, self.project.path)
        registry = self.project.registry()
        report = report_of(await self.project.file.read(), registry)
        return adapters_now(overview, report, registry, self.project.checks)


@asynccontextmanager
async def open_hub(project: Path, access: Access, *, trace_url: str = "") -> AsyncIterator[Hub]:
    """The Hub of a project, watching it while somebody looks.

    :param trace_url: the address of a trace in the viewer that spans are sent to, with ``{trace}`` for its
        id; "" for none.
    :raises TraceLinkError: it is no such address.
    """
    if trace_url:
        trace_link.check(trace_url)
    async with HubFile(project) as file, anyio.create_task_group() as group:
        hub = Hub(ProjectView(project, file), access, trace_url)
        group.start_soon(hub.watch.run)
        try:
            yield hub
        finally:
            hub.views.closing.set()
            group.cancel_scope.cancel()


def hub_of(request: Request) -> Hub:
    return cast("Hub", request.app.state.hub)
