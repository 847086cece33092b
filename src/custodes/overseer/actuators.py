"""Who sets a profile: an adapter with the capability ``profile_switch``, our own policy, or a program.

Whatever one of them raises comes out as a `SwitchError`, and none takes longer than `BOUND_S`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import anyio

from custodes.adapters.errors import AdapterError, instead
from custodes.adapters.port import ProfileSetting, ProfileSwitch, SwitchError
from custodes.adapters.registry import Registry
from custodes.overseer.config import POLICY, PROGRAM, Config
from custodes.overseer.program_switch import ProgramSwitch
from custodes.overseer.role_switch import RoleSwitch

T = TypeVar("T")
BOUND_S = 120.0
"""Seconds for one switch or one reading, its proof included."""


class Actuators:
    """The ProfileSwitch of a name, made at its first use."""

    def __init__(self, config: Config, project: Path) -> None:
        self._config = config
        self._project = project
        self._made: dict[str, ProfileSwitch] = {}

    def __call__(self, name: str) -> ProfileSwitch:
        """:param name: "" is the one adapter that can switch profiles.

        :raises SwitchError: there is none of this name; or, without a name, none or more than one.
        """
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> ProfileSwitch:
        if name == POLICY:
            return Guarded(name, RoleSwitch(self._project))
        if name == PROGRAM and self._config.command is not None:
            return Guarded(name, ProgramSwitch(self._config.command, self._project))
        registry = Registry.discover(self._project)
        able = [each for each, found in registry.descriptors.items() if found.can("profile_switch")]
        if not name:
            if len(able) != 1:
                which = ", ".join(sorted({POLICY, PROGRAM, *able}))
                raise SwitchError(
                    f"name the actuator: {len(able)} adapters can switch profiles; {which} would do"
                )
            (name,) = able
        try:
            return Guarded(name, registry.profile_switch(name))
        except AdapterError as error:
            hint = instead(name, sorted({POLICY, PROGRAM, *able}))
            raise SwitchError(f"the actuator '{name}' cannot be used: {error}. {hint}") from error


class Guarded:
    """A stranger's ProfileSwitch, held to the port's words."""

    def __init__(self, name: str, inner: ProfileSwitch) -> None:
        self._name = name
        self._inner = inner

    async def read(self, profile: str) -> ProfileSetting:
        return await self._held(self._inner.read(profile), "read", profile)

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        await self._held(self._inner.switch(profile, wanted, expected), "set", profile)

    async def recover(self, profile: str) -> bool:
        return await self._held(self._inner.recover(profile), "recover", profile)

    async def _held(self, step: Awaitable[T], what: str, profile: str) -> T:
        try:
            with anyio.fail_after(BOUND_S):
                return await step
        except SwitchError:
            raise
        except TimeoutError:
            raise SwitchError(f"{self._name}: to {what} '{profile}' took over {BOUND_S:.0f} s") from None
        except Exception as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            raise SwitchError(
                f"{self._name}: to {what} '{profile}' failed: {said}", changed=what == "set"
            ) from error
