"""Sets a profile by any program, and proves it by another that reads it back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import anyio
import msgspec

from custodes.adapters import foreign
from custodes.adapters.port import ProfileSetting, SwitchError
from custodes.adapters.process import ProcessResult, ProgramError, base_environment, run_program
from custodes.overseer.config import Commands

TIMEOUT_S = 30.0
_PLACE = re.compile(r"\{(\w+)\}")


class ProgramSwitch:
    """``read`` prints the model, or a JSON object with ``model``, ``provider`` and ``base_url``."""

    def __init__(self, commands: Commands, project: Path) -> None:
        self._commands = commands
        self._project = project

    async def read(self, profile: str) -> ProfileSetting:
        ended = await self._run(self._commands.read, profile, {"profile": profile})
        said = ended.stdout.decode("utf-8", "replace").strip()
        fields = foreign.mapping(foreign.decode(said))
        if foreign.text(fields.get("model")):
            return msgspec.convert(
                {name: fields.get(name) for name in ProfileSetting.__struct_fields__}, ProfileSetting
            )
        model = said.partition("\n")[0].strip()
        if not model or fields:
            raise SwitchError(f"command.read of '{profile}' printed no model")
        return ProfileSetting(model=model)

    async def switch(self, profile: str, wanted: ProfileSetting, expected: ProfileSetting) -> None:
        found = await self.read(profile)
        if not found.holds(expected):
            raise SwitchError(f"'{profile}' was set to {found} meanwhile; it is left so")
        try:
            problem = await self._set(profile, wanted)
            now = await self.read(profile)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._put_back(profile, found, wanted)
            raise
        if not now.holds(wanted):
            now = await self._put_back(profile, found, wanted)
            raise SwitchError(problem or f"command.switch ended well, but '{profile}' still reads as {now}")

    async def _put_back(self, profile: str, before: ProfileSetting, wanted: ProfileSetting) -> ProfileSetting:
        """What it reads as, which is as before. :raises SwitchError: it cannot be brought to."""
        if (now := await self.read(profile)).holds(before):
            return now
        await self._set(profile, before)
        if not (now := await self.read(profile)).holds(before):
            raise SwitchError(f"'{profile}' is left at {now}, half way to {wanted}", changed=True)
        return now

    async def recover(self, profile: str) -> bool:  # noqa: ARG002 - the reading tells where it stands
        return False

    async def _set(self, profile: str, wanted: ProfileSetting) -> str:
        """What went wrong; "" where nothing did."""
        words = {
            "profile": profile,
            **{name: value or "" for name, value in msgspec.structs.asdict(wanted).items()},
        }
        try:
            await self._run(self._commands.switch, profile, words)
        except SwitchError as error:
            return str(error)
        return ""

    async def _run(self, argv: tuple[str, ...], profile: str, words: dict[str, str]) -> ProcessResult:
        filled = [_PLACE.sub(lambda place: words.get(place[1], place[0]), word) for word in argv]
        try:
            ended = await run_program(
                filled,
                cwd=str(self._project),
                environment=base_environment({}, tuple(os.environ)),
                timeout_s=TIMEOUT_S,
            )
        except ProgramError as error:
            raise SwitchError(f"'{profile}': {error}") from error
        if ended.exit_code != 0:
            how = "took too long" if ended.timed_out else f"ended with {ended.exit_code}"
            raise SwitchError(f"'{profile}': the program '{filled[0]}' {how}")
        return ended
