"""Notices that something of a project changed, whoever changed it: settings, adapters, the database.

It looks only while somebody waits: a Hub that nobody looks at does nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.to_thread

from custodes.adapters.registry import Registry
from custodes.hub.project_view import ProjectView
from custodes.policy.settings import FILE, FOLDER
from custodes.store import StoreError

LOOK_S = 0.15
"""Between two looks at the settings file and the database: one stat, and one pragma on an open connection."""
READINESS_S = 2.0
"""Between two looks at the adapters: their files, programs and logins."""


class Watch:
    """``version`` rises with each change; :meth:`changed` waits for it."""

    def __init__(self, project: ProjectView) -> None:
        self._project = project
        self._settings = os.fspath(project.path / FOLDER / FILE)
        self.version: int = 0
        self._news = anyio.Event()
        self._wanted = anyio.Event()
        self._waiting = 0
        self._seen: tuple[object, ...] = ()
        self._adapters: object = None
        self._looked = float("-inf")

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self._waiting:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            await self.look()
            await anyio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look now. A page that is asked for does, so that it never shows what is older than its request."""
        found = await self._signature()
        if found != self._seen:
            self._seen = found
            self.tell()

    def tell(self) -> None:
        """Something changed that no look would see: what the Hub itself keeps."""
        self.version += 1
        self._news.set()
        self._news = anyio.Event()

    async def changed(self, since: int, timeout_s: float) -> bool:
        """Wait until the version is another one than ``since``, at most so long; whether it is."""
        self._waiting += 1
        self._wanted.set()
        try:
            with anyio.move_on_after(timeout_s):
                while self.version == since:
                    await self._news.wait()
        finally:
            self._waiting -= 1
        return self.version != since

    async def _signature(self) -> tuple[object, ...]:
        try:
            data: object = await self._project.file.data_version()
        except StoreError as error:
            data = str(error)
        if anyio.current_time() - self._looked >= READINESS_S:
            self._adapters = await anyio.to_thread.run_sync(_adapters, self._project.path)
            self._looked = anyio.current_time()
        return _identity(self._settings), self._adapters, data


def _identity(path: str) -> object:
    try:
        found = os.stat(path)  # noqa: PTH116  # a stat as `Settings.read` does it
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _adapters(project: Path) -> object:
    registry = Registry.discover(project)
    return registry, tuple(registry.readiness(agent) for agent in registry.agents)
