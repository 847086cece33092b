"""Moves a role of this project's own policy, or its orchestrator, by the policy service."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread

from custodes.adapters.port import ProfileSetting, SwitchError
from custodes.adapters.registry import Registry
from custodes.policy.catalog import Catalog
from custodes.policy.patch import PolicyPatch, TargetPatch
from custodes.policy.roles import is_role, unknown_role
from custodes.policy.settings import Settings, SettingsError, Snapshot

ORCHESTRATOR = "orchestrator"


class RoleSwitch:
    """A profile is a role's name, or ``orchestrator``; ``provider`` is the adapter. The settings service
    writes the whole file or nothing, so a switch cannot be half done."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._settings = Settings(project)

    async def read(self, profile: str) -> ProfileSetting:
        return _setting(profile, await anyio.to_thread.run_sync(self._snapshot, profile))

    def _snapshot(self, profile: str) -> Snapshot:
        if profile != ORCHESTRATOR and not is_role(profile):
            raise SwitchError(unknown_role(profile))
        try:
            return self._settings.read()
        except SettingsError as error:
            raise SwitchError(str(error)) from error

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        snapshot = await anyio.to_thread.run_sync(self._snapshot, profile)
        if not (found := _setting(profile, snapshot)).holds(expected):
            raise SwitchError(f"'{profile}' was set to {found} meanwhile; it is left so")
        if wanted.provider is None:
            raise SwitchError(f"'{profile}': the policy needs an adapter beside the model {wanted.model}")
        target = TargetPatch(adapter=wanted.provider, model=wanted.model)
        whole = {"orchestrator": target} if profile == ORCHESTRATOR else {"roles": {profile: target}}
        await anyio.to_thread.run_sync(self._patch, PolicyPatch(**whole), snapshot.digest)
        if not (now := await self.read(profile)).holds(wanted):
            raise SwitchError(f"'{profile}' was set to {wanted}, but reads back as {now}", changed=True)

    async def recover(self, profile: str) -> bool:  # noqa: ARG002 - nothing is ever half done
        return False

    def _patch(self, change: PolicyPatch, based_on: str) -> None:
        try:
            self._settings.patch(
                change, Catalog.of(Registry.discover(self._project), readiness=False), based_on
            )
        except SettingsError as error:
            raise SwitchError(str(error)) from error


def _setting(profile: str, snapshot: Snapshot) -> ProfileSetting:
    policy = snapshot.policy
    target = policy.orchestrator if profile == ORCHESTRATOR else policy.roles.get(profile)
    if target is None or not target.adapter:
        option = "--orchestrator-adapter" if profile == ORCHESTRATOR else f"--role {profile} --role-adapter"
        raise SwitchError(
            f"the policy names no adapter for '{profile}'; `cos supervision set {option} ADAPTER` does"
        )
    return ProfileSetting(model=target.model, provider=target.adapter)
