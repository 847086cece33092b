"""The services of one project, opened once for everything that looks at it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from custodes.adapters.check import AdapterCheck
from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.overview import Overview, overview_of
from custodes.policy.settings import Settings
from custodes.policy.validate import Problem
from custodes.store import Connection
from custodes.supervision.asks.operator_ask import asks_waiting
from custodes.supervision.asks.permission_table import AskRow
from custodes.supervision.pools.health_file import HealthFile
from custodes.supervision.record.record_file import RecordFile


class HubFile(HealthFile, RecordFile):
    """One open file for health and records."""

    async def asks(self) -> tuple[AskRow, ...]:
        """What children wait for leave for, the oldest first."""
        return await asks_waiting(self)

    async def data_version(self) -> tuple[int, int]:
        """Which of the files that stood there it is, and another number after each commit of anybody else; 0
        where there is no database now."""

        async def ask(connection: Connection) -> int:
            ((version,),) = await connection.execute_fetchall("PRAGMA data_version")
            return int(version)

        version = await self.look(ask, 0)
        return self.opened, version


class SettingsNow(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with the adapters they are about, as of one moment. ``stale`` is what stands in them and
    could not be dispatched."""

    overview: Overview
    catalog: Catalog
    stale: tuple[Problem, ...]


class ProjectView:
    def __init__(self, path: Path, file: HubFile) -> None:
        self.path = path
        self.file = file
        self.settings: Settings = Settings(path)
        self.checks: dict[str, AdapterCheck] = {}
        """What a person last had checked here, by adapter."""

    def registry(self) -> Registry:
        return Registry.discover(self.path)

    def catalog(self) -> Catalog:
        """For what a policy may say, which does not depend on who is logged in today."""
        return Catalog.of(self.registry(), readiness=False)

    def settings_now(self) -> SettingsNow:
        """:raises SettingsError: the settings cannot be read."""
        catalog = self.catalog()
        return SettingsNow(
            overview=overview_of(self.path), catalog=catalog, stale=self.settings.stale(catalog)
        )
